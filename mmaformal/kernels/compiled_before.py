"""Empty files in the cache folder that say what these modules compiled before on this machine.

If a file is wrong, or cannot be written, an answer takes seconds longer, and is the same.
"""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from mmaformal.folders import cache_folder
from mmaformal.version import __version__


def was_compiled(what: str) -> bool:
    """Return whether functions of that name were compiled before: they are then read from disk."""
    with suppress(OSError, RuntimeError):
        return _mark(what).exists()
    return False


def note_compiled(what: str) -> None:
    """Say for later processes that functions of that name are compiled."""
    with suppress(OSError, RuntimeError):  # nothing can be kept, or there is no home
        _write(_mark(what))


@lru_cache(maxsize=1024)
def _write(mark: Path) -> None:
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _mark(what: str) -> Path:
    whole = "\n".join((__version__, __file__, platform.node(), what))
    return cache_folder() / "kernels" / hashlib.sha256(whole.encode()).hexdigest()[:16]
