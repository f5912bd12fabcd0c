"""How many properties of the smallest unit of each algorithm have certificates, at what cost.

    python benchmarks/certified_properties.py results.jsonl [--timeout 120] [--jobs 1] [--unit "volta HMMA.884.F32.F32"]
                                              [--without exactness]

A line of results.jsonl is a property of a unit: its verdict, and of one that holds: how many lemmas its proof and the
proof that both encodings agree rest on, those that have no certificate by name, seconds to solve, to make and to check.
Run again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from mmaformal import ARCHITECTURES, certify, check_certificate
from mmaformal.certificates.check import RefusedError
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES

#: Words of `certify` on a property that has no proof: its verdict comes first.
_NOT_TRUE = ("Fails", "Unknown")


def smallest_units() -> dict[str, Instruction]:
    """Return, of each algorithm that a shipped instruction has, the unit with the fewest bits of input."""

    def bits(unit: Instruction) -> int:
        spec = unit.spec
        return spec.k * (spec.a_format.storage_bits + spec.b_format.storage_bits) + spec.c_format.storage_bits

    units = sorted((unit for each in ARCHITECTURES.values() for unit in each), key=bits, reverse=True)
    return dict(sorted({unit.parameters.algorithm: unit for unit in units}.items()))


def certified(unit: str, name: str, folder: Path, timeout: float, jobs: int) -> dict[str, object]:
    """Return what the certificate of a property cost, `why` where it has none; or that it is not true."""
    line: dict[str, object] = {"unit": unit, "property": name}
    start = time.perf_counter()
    made = certify(unit, folder, properties=[name], timeout=timeout, jobs=jobs)
    line |= {"seconds": time.perf_counter() - start, "lemmas": len(made.lemmas), "bytes": made.size}
    line |= {"argued": made.argued, "by_kernel": made.by_kernel, "solving": made.solving}
    if made.not_proved and made.not_proved[0].startswith(_NOT_TRUE):
        return line | {"verdict": made.not_proved[0].partition(":")[0], "why": made.not_proved[0]}
    if made.verdict != "certified":
        without = [f"{statement}: {none.why}" for statement, none in made.without]
        return line | {"verdict": "incomplete", "why": "; ".join([*made.not_proved, *without])}
    try:
        checked = check_certificate(folder, timeout=timeout)
    except RefusedError as error:
        return line | {"verdict": "refused", "why": str(error)}
    return line | {"verdict": "certified", "checking": checked.seconds}


def summary(lines: Iterable[dict[str, object]]) -> str:
    """Return a row for each unit, and every property that has no certificate and is not refuted."""
    rows: dict[str, list[dict[str, object]]] = {}
    for line in lines:
        rows.setdefault(str(line["unit"]), []).append(line)
    out, rest = (
        ["| unit | hold | certified | theorems argued | by the kernel | MB | made in | checked in |"],
        [],
    )
    out.append("|---|" + 7 * "---:|")
    for unit, its in rows.items():
        hold = [line for line in its if not str(line["verdict"]).startswith(_NOT_TRUE)]
        done = [line for line in hold if line["verdict"] == "certified"]
        total = {
            name: sum(float(str(line.get(name, 0))) for line in done)
            for name in ("argued", "by_kernel", "bytes", "seconds", "checking")
        }
        out.append(
            f"| {unit} | {len(hold)} | {len(done)} | {total['argued']:.0f} | {total['by_kernel']:.0f} | "
            f"{total['bytes'] / 1e6:.0f} | {total['seconds']:.0f} s | {total['checking']:.0f} s |"
        )
        rest += [line for line in its if line["verdict"] not in ("Fails", "certified")]
    return "\n".join([*out, *(f"{x['unit']}, {x['property']}: {x['verdict']}: {x.get('why')}" for x in rest)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--timeout", type=float, default=120.0, help="seconds for each proof, and for each lemma"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--unit", action="append", help="instead of the smallest unit of each algorithm")
    parser.add_argument("--without", action="append", default=[], metavar="PROPERTY", help="leave it out")
    args = parser.parse_args()
    lines = [json.loads(x) for x in args.results.read_text().splitlines()] if args.results.exists() else []
    done = {(line["unit"], line["property"]) for line in lines}
    units = args.unit or [unit.label for unit in smallest_units().values()]
    with args.results.open("a") as out:
        for unit in units:
            with tempfile.TemporaryDirectory() as folder:
                for name in PROPERTIES:
                    if (unit, name) in done or name in args.without:
                        continue
                    lines.append(certified(unit, name, Path(folder), args.timeout, args.jobs))
                    out.write(json.dumps(lines[-1]) + "\n")
                    out.flush()
                    print(f"{unit}, {name}: {lines[-1]['verdict']}", flush=True)
    print(summary(lines))


if __name__ == "__main__":
    main()
