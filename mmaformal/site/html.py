"""HTML of pages, written out whole: they read without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

Markup = str  #: HTML; text becomes it by `escape`


def link(text: str, to: str) -> Markup:
    """A link; its text is escaped."""
    return f'<a href="{escape(to)}">{escape(text)}</a>'


def page_table(
    head: Sequence[str], rows: Iterable[Sequence[Markup]], name: str, search: Sequence[str] = ()
) -> Markup:
    """A table that scripts make sortable; of each row, words by which it is found beside those of its cells."""
    body = []
    for number, row in enumerate(rows):
        words = f' data-words="{escape(search[number])}"' if search else ""
        first, *others = row
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        body.append(f'<tr{words}><th scope="row">{first}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">\n'
        f'<table data-name="{escape(name)}"><thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody></table></div>\n"
    )


def definition_list(pairs: Mapping[str, str]) -> Markup:
    """A list of names with texts."""
    told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in pairs.items())
    return f"<dl>\n{told}</dl>\n"


def verdict(word: str) -> Markup:
    """A verdict with a class of its own."""
    return f'<span class="verdict {word.replace(" ", "-")}">{word}</span>'


def drawing(svg: Markup, text: str) -> Markup:
    """A drawing that may be wider than the screen, and the same as text to copy."""
    return (
        f'<div class="scroll drawing" role="region" tabindex="0" aria-label="drawing">{svg}</div>\n'
        f"<details><summary>as text</summary><pre>{escape(text)}</pre></details>\n"
    )


def playground(root: str, labels: Sequence[str], codes: Mapping[str, Sequence[str]] | None = None) -> str:
    """The address of the playground with units and what is typed for them."""
    state = {"units": labels, **(codes or {})}
    words = "&".join(f"{key}={quote(','.join(values), safe=',')}" for key, values in state.items())
    return f"{root}playground.html#{words}"


def page(title: str, body: Markup, depth: int = 0, script: str = "", data: str = "instructions") -> str:
    """A whole page, so many folders below the first one; `data` names the files of its tables."""
    root = "../" * depth
    module = f'<script type="module" src="{root}{script}"></script>\n' if script else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · mmaformal</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}style.css">
<script defer src="{root}atlas.js"></script>
{module}</head>
<body data-root="{root}">
<a class="skip" href="#main">To the content</a>
<header>
<nav aria-label="Site">
<a class="home" href="{root}index.html">mmaformal</a>
<a href="{root}index.html#instructions">instructions</a>
<a href="{root}index.html#properties">properties</a>
<a href="{root}pairs.html">pairs</a>
<a href="{root}sources.html">sources</a>
<a href="{root}playground.html">playground</a>
<a href="{root}questions.html">questions</a>
</nav>
<form role="search" action="{root}index.html">
<input type="search" name="q" placeholder="h100 fp8" aria-label="Search instructions, architectures, properties">
<button>Search</button>
</form>
</header>
<main id="main">
<h1>{escape(title)}</h1>
{body}</main>
<footer>Made by <code>mmaformal atlas build</code>; every number is from its tables.
<a href="{root}data/{data}.csv">CSV</a> <a href="{root}data/{data}.json">JSON</a></footer>
</body>
</html>
"""
