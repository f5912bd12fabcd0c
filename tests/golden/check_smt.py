"""The SMT encoding on the golden vectors, by substituting constants and simplifying; the table in
tables/validation-smt.md.

    python tests/golden/check_smt.py --cases 50 --markdown tables/validation-smt.md

Exit status 1 if anything disagrees with mmasim.  (`pytest tests/encodings/test_golden.py` does the same on a few cases
each.)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.golden_vectors import FILES, evaluate_smt, instruction_of, kept_rows, load

from mmaformal.witness import results_differ

_HEAD = """\
# The SMT encoding against mmasim

The bit-vector terms, with constants substituted and simplified, against what mmasim 2.1.1 returned on the golden
vectors (tests/golden, 510 cases of each behaviour over 15 families of inputs; rows drawn at random, seeded). Made by

    python tests/golden/check_smt.py --cases {cases} --markdown tables/validation-smt.md

The executable encoding reproduces all of the golden vectors (tests/encodings/test_golden.py) and is compared with
mmasim on far more cases in validation-mmasim.md; that both encodings are equal for all inputs is proved by
`mmaformal verify --all` (docs/proofs.md). **{behaviours} behaviours of {instructions} instructions, {total:,} cases,
{wrong} disagreements.**

| types, K | algorithm | instructions | cases | disagreements |
|---|---|---|---:|---:|
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=50, help="per behaviour")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    lines, total, wrong, instructions = [], 0, 0, 0
    for path in FILES:
        arrays, meta = load(path)
        rng = np.random.default_rng(list(path.stem.encode()))
        for output in meta["outputs"]:
            spec = instruction_of(output["instructions"][0]).spec
            rows = np.flatnonzero(kept_rows(meta, output))
            rows = rng.choice(rows, min(args.cases, len(rows)), replace=False)
            bad = [
                int(row)
                for row in rows
                if results_differ(
                    spec, spec, evaluate_smt(spec, arrays, int(row)), int(arrays[output["key"]][row])
                )
            ]
            total, wrong = total + len(rows), wrong + len(bad)
            instructions += len(output["instructions"])
            names = output["instructions"]
            shown = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
            lines.append(f"| {path.stem} | {output['algorithm']} | {shown} | {len(rows)} | {len(bad)} |")
            print(
                f"{path.stem} {output['algorithm']}: {len(rows)} cases, {len(bad)} disagreements {bad}",
                flush=True,
            )
    head = _HEAD.format(
        cases=args.cases, behaviours=len(lines), instructions=instructions, total=total, wrong=wrong
    )
    if args.markdown:
        args.markdown.write_text(head + "\n".join(lines) + "\n")
    print(f"{len(lines)} behaviours, {total} cases, {wrong} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
