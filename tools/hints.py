"""Count the hints: claims of the proofs whose cut is written by hand (`claim(…, hint=…)`), by file.

python tools/hints.py
python tools/hints.py --most 60     # exit status 1 if there are more
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Where proofs are written.
ROOMS = (
    "encodings",
    "mmaformal/facts",
    "mmaformal/proof",
    "mmaformal/theory",
    "mmaformal/studies",
    "queries",
)

#: The place of the hint among the arguments of `Composing.claim`, and what computes one by a rule.
_PLACE, _COMPUTED = 4, {"propositions", "sum_parts", "compared"}


def hints(root: Path = ROOT) -> Counter[str]:
    """How many claims of each file have a hint, by its path."""
    found: Counter[str] = Counter()
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found[str(path.relative_to(root))] = sum(1 for _ in _hinted(tree))
    return +found


def _hinted(tree: ast.Module) -> Iterator[ast.expr]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "claim":
            named = [each.value for each in call.keywords if each.arg == "hint"]
            yield from (each for each in [*named, *call.args[_PLACE:]] if not _is_computed(each))


def _is_computed(hint: ast.expr) -> bool:
    return isinstance(hint, ast.Call) and isinstance(hint.func, ast.Name) and hint.func.id in _COMPUTED


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, metavar="N", help="exit with 1 if there are more than N")
    most = parser.parse_args().most
    found = hints()
    for path, count in found.most_common():
        print(f"{count:4}  {path}")
    print(f"{found.total():4}  in all")
    return int(most is not None and found.total() > most)


if __name__ == "__main__":
    sys.exit(main())
