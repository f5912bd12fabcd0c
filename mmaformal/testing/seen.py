"""Records of what was tested, for a report at the end of a run (`mmaformal_pytest`)."""

from __future__ import annotations

from typing import TypedDict


class Seen(TypedDict):
    """A product that passed, or did not, as plain values."""

    what: str  #: `matches` or `within`
    unit: str
    elements: int
    used: float  #: of `within`: the largest error over its bound


#: Since it was last read; the plugin empties it after each test.
SEEN: list[Seen] = []
_MOST = 10_000


def saw(what: str, unit: str, elements: int, used: float = 0.0) -> None:
    """Remember a product; of very many the first."""
    if len(SEEN) < _MOST:
        SEEN.append({"what": what, "unit": unit, "elements": elements, "used": used})


def newly_seen() -> list[Seen]:
    """Returns what was tested since it was last asked."""
    found = SEEN.copy()
    SEEN.clear()
    return found
