"""Write the numbers that documents give of the registry, or say which are stale.

    python tools/counts.py            # rewrites README.md and docs/*.md
    python tools/counts.py --check    # exit status 1 if a number is stale

A document that has such numbers lists the phrases they stand in, in a comment at its end, one to a line:

    <!-- counted by tools/counts.py:
    all {instructions} instructions
    {architectures:Word} architectures
    -->

Each phrase is looked for in the text, a space being any white space, and a number any number, so that the document
reads as if no tool had touched it.  {name} is a number in digits, {name:word} in words, {name:Word} capitalised.  A
phrase that does not occur is an error: the sentence was rewritten, and its phrase is to be rewritten with it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from functools import cache
from pathlib import Path

from mmaformal.architectures import ARCHITECTURES, amd, nvidia
from mmaformal.mma import mma_or_why_not
from mmaformal.recordings import backing

ROOT = Path(__file__).parents[1]

_BLOCK = re.compile(r"<!-- counted by tools/counts\.py:\n(.*?)-->", re.DOTALL)
_PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_WORDS = (
    *(
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBER = rf"(?:\d[\d,]*|{'|'.join(reversed(_WORDS))})"


@cache
def counts() -> dict[str, int]:
    """All numbers that a document may name."""
    listed = [(name, i) for name, architecture in ARCHITECTURES.items() for i in architecture]
    of_nvidia = {name for name in ARCHITECTURES if hasattr(nvidia, name)}
    of_amd = {name for name in ARCHITECTURES if hasattr(amd, name)}
    gpu = [(name, i) for name, i in listed if name in of_nvidia | of_amd]
    sync = [i for _, i in gpu if mma_or_why_not(i)[0] is not None]
    facts = json.loads((ROOT / "mmaformal" / "recordings" / backing.FILE).read_text(encoding="utf-8"))[
        "recordings"
    ]
    recorded = {each["instruction"] for each in facts}
    of_gpu = [each for each in facts if each["instruction"] in {i.label for _, i in gpu}]
    return {
        "architectures": len(list(ARCHITECTURES)),
        "instructions": len(listed),
        "algorithms": len({i.spec.parameters.algorithm for _, i in listed}),
        "gpu_architectures": len(of_nvidia | of_amd),
        "gpu_instructions": len(gpu),
        "gpu_algorithms": len({i.spec.parameters.algorithm for _, i in gpu}),
        "mma_sync": len(sync),
        "not_mma_sync": len(gpu) - len(sync),
        "amd": sum(name in of_amd for name, _ in gpu),
        "wgmma": sum(name == "hopper" and i.name.partition(".")[0].endswith("GMMA") for name, i in gpu),
        "tcgen05": sum(i.name.startswith("UTC") for _, i in gpu),
        "recorded": len(recorded),
        "recordings": len(facts),
        "recorded_rows": sum(each["rows"] for each in facts),
        "recorded_gpu": len({each["instruction"] for each in of_gpu}),
        "recordings_gpu": len(of_gpu),
        "recorded_rows_gpu": sum(each["rows"] for each in of_gpu),
    }


def written(value: int, how: str | None) -> str:
    """A number in digits or in words.  Raises ValueError for another way, or for a number without a word."""
    if how is None:
        return f"{value:,}"
    if how.lower() != "word" or value >= len(_WORDS):
        raise ValueError(f"{value} is written as digits, {{name}}, not {{name:{how}}}")
    return _WORDS[value].capitalize() if how[0] == "W" else _WORDS[value]


def rewritten(text: str) -> str:
    """The document with the numbers of now.  Raises ValueError for a phrase or a name that there is none of."""
    block = _BLOCK.search(text)
    if block is None:
        return text
    body, rest = text[: block.start()], text[block.start() :]
    for phrase in filter(None, (line.strip() for line in block[1].splitlines())):
        body = _replaced(body, phrase)
    return body + rest


def _replaced(body: str, phrase: str) -> str:
    parts = _PLACE.split(phrase)  # text, name, how, text, name, how, …, text
    values = []
    for name, how in zip(parts[1::3], parts[2::3], strict=True):
        if name not in counts():
            raise ValueError(f"no count {name!r}; there are {', '.join(counts())}")
        values.append(written(counts()[name], how))
    if not values:
        raise ValueError(f"{phrase!r} has no {{name}} in it")
    texts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in parts[::3]]
    pattern = re.compile(rf"(?<![\d,])({')('.join(_interleaved(texts))})", re.IGNORECASE)
    if not pattern.search(body):
        raise ValueError(f"no text {phrase!r}: rewrite the phrase with its sentence")

    def now(found: re.Match[str]) -> str:
        pieces = list(found.groups())
        pieces[1::2] = values
        return "".join(pieces)

    return pattern.sub(now, body)


def _interleaved(texts: list[str]) -> list[str]:
    found = [texts[0]]
    for each in texts[1:]:
        found += [_NUMBER, each]
    return found


def pages() -> list[Path]:
    """The documents that list phrases."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if _BLOCK.search(path.read_text(encoding="utf-8"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit status 1 if a number is stale"
    )
    check = parser.parse_args().check
    stale = False
    for path in pages():
        text = path.read_text(encoding="utf-8")
        try:
            new = rewritten(text)
        except ValueError as error:
            print(f"{path.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 2
        if new != text:
            stale = True
            print(f"{path.relative_to(ROOT)}: {'stale; python tools/counts.py' if check else 'rewritten'}")
            if not check:
                path.write_text(new, encoding="utf-8")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
