"""Measure what stands behind each model, and write it down.

    R=../shared/recordings
    python tools/evidence.py $R $R/lowered $R/processors/{emr,qemu,apple}_*.npz $R/emulators/*.npz

Checks every recording named or in a folder named, reads the cases of tables/validation-mmasim.md, and writes
mmaformal/recordings/backing.json and tables/evidence.md.  Exits with 1 if a model does not reproduce a recording.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np

from mmaformal.recordings import CheckReport, check_file
from mmaformal.recordings.backing import (
    FILE,
    BackingFacts,
    Measured,
    MeasuredStates,
    backing_page,
    save_backing,
)
from mmaformal.recordings.states import check_states, holds_states

ROOT = Path(__file__).parents[1]

_ROW = re.compile(r"\| (\S+) \| (\S+) \| `[^`]*` \| ([\d,]+) \| (\d+) \|")


def measured(path: Path) -> Measured:
    """Device, instruction, rows, and how many places have a nonzero code in some row.  Raises ValueError."""
    report = check_file(path)
    if not isinstance(report, CheckReport) or report.mismatches:
        raise ValueError(str(report))
    if report.recording.gpu is None:
        raise ValueError(f"{path} names no device")
    rows = report.recording.load()
    last = int(np.flatnonzero((rows.a != 0).any(axis=0) | (rows.b != 0).any(axis=0)).max())
    return {
        "gpu": report.recording.gpu,
        "instruction": report.instruction.label,
        "rows": report.rows,
        "products": last + 1,
    }


def measured_states(path: Path) -> MeasuredStates:
    """Device, and states of each instruction.  Raises ValueError."""
    report = check_states(path)
    if report.mismatches or report.device is None:
        raise ValueError(str(report))
    return {"device": report.device, "rows": dict(sorted(report.counts.items()))}


def of_mmasim(text: str) -> dict[str, int]:
    """Cases by instruction, of the table in tables/validation-mmasim.md.  Raises ValueError on a disagreement."""
    cases = {}
    for architecture, name, count, disagreements in _ROW.findall(text):
        if int(disagreements):
            raise ValueError(f"mmasim disagrees with {architecture} {name}")
        cases[f"{architecture} {name}"] = int(count.replace(",", ""))
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="recordings (.npz), or folders of them")
    paths = parser.parse_args().paths
    found = [file for path in paths for file in (sorted(path.glob("*.npz")) if path.is_dir() else [path])]
    states = [file for file in found if holds_states(file)]
    try:
        facts: BackingFacts = {
            "recordings": [measured(file) for file in found if file not in states],
            "states": [measured_states(file) for file in states],
            "mmasim": of_mmasim((ROOT / "tables" / "validation-mmasim.md").read_text(encoding="utf-8")),
        }
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    save_backing(facts, ROOT / "mmaformal" / "recordings" / FILE)
    (ROOT / "tables" / "evidence.md").write_text(backing_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
