"""Reading symbolic expressions, as SMT-LIB 2 writes its commands and terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A symbolic expression: a word, or a list of them.
Expression = str | list["Expression"]


class ScriptError(Exception):
    """A script is not of the part of SMT-LIB 2 that is read here."""


_TOKEN = re.compile(r"[ \t\r\n]+|;[^\n]*|([()]|\|[^|\\]*\||[^\s()|;\"]+)")


def expressions(text: str) -> Iterator[Expression]:
    """Yield the expressions of a text.  Raises ScriptError if parentheses are not in pairs, or a character is none."""
    open_lists: list[list[Expression]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ScriptError(f"not SMT-LIB 2: {text[at : at + 20]!r}")
        at, word = token.end(), token.group(1)
        if word is None:
            continue
        if word == "(":
            open_lists.append([])
            continue
        if word == ")":
            if not open_lists:
                raise ScriptError("a parenthesis closes nothing")
            found: Expression = open_lists.pop()
        else:
            found = word
        if open_lists:
            open_lists[-1].append(found)
        else:
            yield found
    if open_lists:
        raise ScriptError("a parenthesis is not closed")
