"""The words by which the site's search finds an instruction, beside its name."""

from __future__ import annotations

from mmaformal.architectures.base import SCALED_WORDS, TYPE_WORDS, takes
from mmaformal.architectures.products import PRODUCTS
from mmaformal.instruction import Instruction


def devices(architecture: str) -> list[str]:
    """The names of devices that stand for an architecture."""
    return [name for each in PRODUCTS if each.architecture == architecture for name in each.names]


def search_words(i: Instruction) -> list[str]:
    """The words by which an instruction is found beside its name: architecture, aliases, and words for its types."""
    types = [word for word in (*TYPE_WORDS, *SCALED_WORDS) if takes(i, word)]
    return [i.architecture, *i.aliases, *types]


def device_words() -> dict[str, list[str]]:
    """The architectures that each word of a device's name means, in small letters: `h100`, `rtx`, `4090`."""
    found: dict[str, dict[str, None]] = {}
    for each in PRODUCTS:
        for word in " ".join(each.names).lower().split():
            found.setdefault(word, {})[each.architecture] = None
    return {word: list(architectures) for word, architectures in sorted(found.items())}


def maker(architecture: str) -> str:
    """Who makes the devices of an architecture; the architecture itself where no device is known by name."""
    sources = (each.source.partition(",")[0] for each in PRODUCTS if each.architecture == architecture)
    return next(sources, architecture)
