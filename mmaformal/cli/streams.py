"""Standard streams that cannot fail in the middle of an answer: closed ones, narrow encodings, readers that left."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from typing import IO

#: How a terminal that lacks a sign sees it; every sign that this package writes is here (tests/cli/test_terminal.py).
_PLAIN = {
    "−": "-",
    "–": "-",
    "—": "-",
    "·": "*",
    "×": "x",
    "±": "+-",
    "∞": "inf",
    "Σ": "sum",
    "ρ": "rho",
    "λ": "lambda",
    "μ": "mu",
    "Δ": "Delta",
    "ε": "eps",
    "≠": "!=",
    "⊕": "(+)",
    "⊖": "(-)",
    "½": "1/2",
    "⌊": "floor(",
    "⌋": ")",
    "ᵀ": "^T",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "∈": "in",
    "→": "->",
    "⇒": "=>",
    "§": "section ",
    "σ": "sigma",
    "τ": "tau",
    "α": "alpha",
    "φ": "phi",
    "é": "e",
    "î": "i",
    "β": "beta",
    "⌈": "ceil(",
    "┄": ".",
    "┤": "|",
    "↓": "v",
    "⌉": ")",
    "√": "sqrt ",
    "₀": "0",
    "₁": "1",
    "…": "...",
    "✓": "+",
    "✗": "-",
    "⁰": "^0",
    "¹": "^1",
    "²": "^2",
    "⁴": "^4",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "¬": "not ",
    "η": "eta",
    "θ": "theta",
    "δ": "delta",
    "κ": "kappa",
    "γ": "gamma",
    "ω": "omega",
    "Ω": "Omega",
    "ν": "nu",
    "ℓ": "l",
    "Λ": "Lambda",
    "Ĉ": "C",
    "‖": "||",
    "≲": "<~",
    "├": "|",
    "└": "`",
    "│": "|",
    "─": "-",
}


def _degrade(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign, "?") for sign in found), error.end


codecs.register_error("mmaformal", _degrade)


def prepare_streams() -> None:
    """Make stdin, stdout and stderr usable, whatever the command was started with.

    A stream that is closed is /dev/null from here on: its number must not become that of the next file opened.  A sign
    that a stream's encoding lacks is written as its nearest one.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_null(number)
            stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
    for out in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # not a stream of text that is encoded
            out.reconfigure(errors="mmaformal")  # type: ignore[union-attr]


def _open_null(number: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def discard(stream: IO[str]) -> None:
    """Write the rest of a stream to /dev/null: Python flushes at exit, which must not fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
