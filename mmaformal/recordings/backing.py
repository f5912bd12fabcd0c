"""The backing of an instruction's model: recorded outputs of hardware, mmasim, or nothing of its own.

`backing.json` has the facts, `python tools/evidence.py` measures them (from folders of recordings and the table of
tables/validation-mmasim.md) and writes tables/evidence.md with them.  Nothing here is typed by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypedDict

from mmaformal.architectures import ARCHITECTURES, SPECIFIED_UNITS
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction

FILE = "backing.json"

#: Kinds of evidence behind a model, the strongest first; `check` and tables/evidence.md have these words.
HARDWARE, EMULATOR, SPECIFICATION, SIMULATOR, NONE = (
    "hardware",
    "emulator",
    "specification text",
    "published simulator",
    "none",
)

#: Whose code was run, of instructions with no file of recordings among others
_BOCHS = "Bochs, by Stanislav Shwartsman"
_QEMU = "QEMU 7.2, by Fabrice Bellard and others"
EMULATORS = {
    "sme": _QEMU,
    "power10": _QEMU,
    "riscv": "Spike, by RISC-V International",
    "apple_amx": "corsix/amx, by Peter Cawley",
    "amx_fp16 TDPFP16PS": _BOCHS,
    "diamond_rapids VDPPHPS": _BOCHS,
}

#: Whose text is the only source
TEXTS = {
    "armv9_ebf16": "the Arm ARM's pseudocode",
    "armv9_fp8": "the Arm ARM's pseudocode",
    "amx_fp16": "Intel's SDM",
    "diamond_rapids": "Intel's ISE",
    "e9s12": "the paper that proposes it",
    **{f"riscv vfbdota.vv.n{2 << i}": "the RISC-V ISA manual's draft of Zvfbdota32f" for i in range(6)},
}

#: States of each instruction of Apple AMX whose bytes after are kept as a digest (tests/support/amx_states.py)
STATE_DIGESTS = 100

#: Architectures that the authors of mmasim had no GPU of (MMA-Sim, appendix C: "we do not have a CDNA1 GPU")
UNSEEN_BY_MMASIM = ("cdna1",)


class Measured(TypedDict):
    """A recording, as it is written down."""

    gpu: str
    instruction: str
    rows: int
    products: int


class MeasuredStates(TypedDict):
    """A recording of states (`recordings.states`), as it is written down."""

    device: str
    rows: dict[str, int]  #: of each instruction


class BackingFacts(TypedDict):
    """The contents of `backing.json`."""

    recordings: list[Measured]
    states: list[MeasuredStates]
    mmasim: dict[str, int]  #: dot product-adds, by instruction


@dataclass(frozen=True, repr=False)
class ReproducedOutputs(ShortRepr):
    """Outputs of one kind of GPU, all of which the model reproduces."""

    gpu: str
    rows: int
    products: int  #: how many of the K places have a nonzero code in some row, counted from the first

    @property
    def emulated(self) -> bool:
        """Whether the device is an emulator or a simulator, as its name in the recording says."""
        return "not hardware" in self.gpu

    def text(self, instruction: Instruction) -> str:
        k, step = instruction.k, instruction.parameters.step_products
        places = f", {self.products} of {k} products" if self.products < k else ""
        steps = f", the first of {k // step} steps only" if self.products <= step < k else ""
        return f"{self.gpu}, {self.rows:,} rows{places}{steps}"


@dataclass(frozen=True, repr=False)
class Backing(ShortRepr):
    """The evidence for one instruction."""

    instruction: Instruction
    recorded: tuple[ReproducedOutputs, ...]  #: of the instruction itself
    alike: tuple[Instruction, ...]  #: recorded ones that have the same arithmetic, or, lowered, are taken to
    mmasim: int  #: dot product-adds on which mmasim and the model agree

    @property
    def kind(self) -> str:
        """The strongest of what is behind the model: `HARDWARE`, `EMULATOR`, `SPECIFICATION`, `SIMULATOR`, `NONE`."""
        recorded = self.recorded or tuple(x for each in self.alike for x in _recorded(each.label))
        if any(not each.emulated for each in recorded):
            return HARDWARE
        if recorded or _emulator(self.instruction):
            return EMULATOR
        if self.mmasim:
            return SIMULATOR
        return SPECIFICATION if _text_only(self.instruction) else NONE

    @property
    def whose(self) -> str:
        """Whose emulator or text it is, where that is all; empty otherwise."""
        if self.kind == EMULATOR:
            return _emulator(self.instruction) or ", ".join(dict.fromkeys(x.gpu for x in self.recorded))
        return _text_only(self.instruction) if self.kind == SPECIFICATION else ""

    @property
    def exact(self) -> bool:
        """Whether the model's rule is one that exact arithmetic decides; not whether hardware follows it."""
        return self.instruction.parameters.rounds_correctly

    def text(self) -> str:
        """One line."""
        parts = []
        standing = ARCHITECTURES[self.instruction.architecture].standing
        if standing:
            part = f"; in part open: {open_}" if (open_ := opened(self.instruction)) else ""
            how = " on hardware; compared with an emulator" if self.kind == EMULATOR else ""
            return f"{standing}{how}: {self.whose}{part}; docs/specified.md has more"
        if self.recorded:
            outputs = "; ".join(each.text(self.instruction) for each in self.recorded)
            parts.append(f"recorded outputs, all reproduced: {outputs}")
        elif self.alike:
            parts.append(f"none recorded; taken to be like {_names(self.alike)}")
        else:
            parts.append("no recorded output")
        if self.mmasim:
            unseen = self.instruction.architecture in UNSEEN_BY_MMASIM
            whose = ", whose authors had no such GPU," if unseen else ""
            parts.append(f"mmasim 2.1.1{whose} agrees on {self.mmasim:,} dot product-adds")
        elif self.kind == EMULATOR and not self.recorded:
            parts.append(f"compared with an emulator, {self.whose}")
        elif self.kind == SPECIFICATION:
            parts.append(f"specified, never run: {self.whose}")
        elif not self.recorded:
            parts.append("mmasim does not have it")
        if self.exact:
            parts.append("checked against exact arithmetic, as its rule says")
        return "; ".join(parts)


def _base(instruction: Instruction) -> str:
    """Returns the name without the K that it is configured for."""
    return instruction.name.partition(".K")[0]


def _emulator(instruction: Instruction) -> str:
    """Returns whose code was run; nothing if none was."""
    label = f"{instruction.architecture} {_base(instruction)}"
    if label in TEXTS:
        return ""
    return EMULATORS.get(label) or EMULATORS.get(instruction.architecture, "")


def _text_only(instruction: Instruction) -> str:
    """Returns whose text is the only source; nothing if there is another."""
    label = f"{instruction.architecture} {_base(instruction)}"
    return TEXTS.get(label) or TEXTS.get(instruction.architecture, "")


def opened(instruction: Instruction) -> str:
    """Returns what the texts leave open of an instruction; nothing if they do not."""
    base = _base(instruction)
    found = ARCHITECTURES[instruction.architecture].unsettled.items()
    return "; ".join(why for names, why in found if base in names.split(", "))


def _names(instructions: tuple[Instruction, ...]) -> str:
    return " and ".join(each.label for each in instructions)


@cache
def _facts() -> BackingFacts:
    facts: BackingFacts = json.loads((files(__package__) / FILE).read_text(encoding="utf-8"))
    return facts


def _recorded(label: str) -> tuple[ReproducedOutputs, ...]:
    rows = [each for each in _facts()["recordings"] if each["instruction"] == label]
    return tuple(ReproducedOutputs(each["gpu"], each["rows"], each["products"]) for each in rows)


@cache
def _recorded_instructions() -> tuple[Instruction, ...]:
    labels = dict.fromkeys(each["instruction"] for each in _facts()["recordings"])
    return tuple(ARCHITECTURES[a][name] for a, name in (label.split(" ", 1) for label in labels))


def backing(instruction: Instruction) -> Backing | None:
    """Return the evidence for a row of the tables; None for others (hypothetical, chained, a revision, a datapath)."""
    architecture = ARCHITECTURES.get(instruction.architecture)
    if (
        architecture is None
        or architecture.name not in (*ARCHITECTURES, *SPECIFIED_UNITS)
        or instruction.name not in architecture
    ):
        return None
    found = architecture[instruction.name]
    if found.spec != instruction.spec:
        return None
    for base in architecture:
        if found.k in base.depths and found.name != base.name and base.configured(found.k) == found:
            return Backing(instruction, (), (base,), 0)
    tabled = next(each for each in architecture if each.spec is found.spec)  # of sized ones, the row
    recorded = _recorded(tabled.label)
    alike = () if recorded else _alike(tabled)
    return Backing(instruction, recorded, alike, _facts()["mmasim"].get(tabled.label, 0))


def _alike(instruction: Instruction) -> tuple[Instruction, ...]:
    """The recorded instructions nearest to it: of the same arithmetic, on its own architecture if there are any;
    a lowered one is taken to be like every lowered one, nearest first where the output is of the same type."""
    nearness: dict[Instruction, tuple[bool, bool, bool]] = {}
    for other in _recorded_instructions():
        same = other.spec == instruction.spec
        lowered = [getattr(i.parameters, "operands", None) is not None for i in (other, instruction)]
        if same or all(lowered):
            own = other.architecture == instruction.architecture
            nearness[other] = (same, other.d_format is instruction.d_format, own)
    nearest = max(nearness.values(), default=None)
    return tuple(other for other, near in nearness.items() if near == nearest)


_HEAD = """\
# Evidence

What stands behind each instruction's model. Made by `python tools/evidence.py`; do not edit.

- **recorded**: outputs of that GPU, all of which the model reproduces bit for bit: device and rows, and how many of the
  K products they use where it is not all. Where that is the first step of a chain, the others are taken to be like it.
- **alike**: nothing of this instruction is recorded; the one named has the same model, and is. For lowered fp8 the
  input types differ too, or the GPU.
- **mmasim**: dot product-adds on which the model and mmasim 2.1.1 agree (validation-mmasim.md). Its authors compared it
  with hardware, "over one million sets" for each instruction, on V100, T4, A100, RTX 4090, H100, B200, RTX PRO 6000,
  MI250X and MI300X; not on CDNA1, of which they had no GPU.
- **behind it**: the strongest of what there is: *hardware* (recorded outputs, its own or of one alike), an *emulator*
  and whose, a *published simulator* (mmasim), a *specification text* and whose, which was never run, or *none*.
- **exact**: the rule is correct rounding, which exact rational arithmetic decides (tests/encodings/test_executable.py);
  whether the hardware follows that rule it cannot say.

"""


def backing_page() -> str:
    """tables/evidence.md."""
    rows = [each for architecture in ARCHITECTURES.values() for i in architecture if (each := backing(i))]
    recorded = [each for each in rows if each.recorded]
    alike = [each for each in rows if each.alike]
    alone = [each for each in rows if not each.recorded and not each.alike]
    files_, outputs = len(_facts()["recordings"]), sum(each["rows"] for each in _facts()["recordings"])
    none = [each.instruction.label for each in alone if each.kind == NONE]
    texts = [each for each in alone if not each.mmasim and each.kind != NONE]
    without = [name for name in ARCHITECTURES if not any(each.recorded for each in rows if _is(each, name))]
    without = [f"{name} (but states, below)" if name == _STATEFUL else name for name in without]
    kinds = [each.kind for each in rows]
    counted = ", ".join(
        f"{kinds.count(kind)} {kind}"
        for kind in (HARDWARE, EMULATOR, SIMULATOR, SPECIFICATION, NONE)
        if kind in kinds
    )
    lines = [
        f"{len(rows)} instructions: {len(recorded)} with recorded outputs of their own ({files_} recordings, "
        f"{outputs:,} rows), {len(alike)} alike to one of those, {len(alone) - len(texts)} with mmasim alone, "
        f"{len(texts)} with an emulator or a text alone"
        + (f", {len(none)} with nothing ({', '.join(none)})." if none else ".")
        + f" No recording is of {', '.join(without)}, nor of block scales, fp6 or fp4.",
        "",
        f"Behind them: {counted}.",
        "",
        "| architecture | instruction | behind it | recorded | alike | mmasim | exact |",
        "|---|---|---|---|---|---:|---|",
    ]
    for each in rows:
        i = each.instruction
        outputs_ = "; ".join(x.text(i) for x in each.recorded) or "–"
        mmasim = f"{each.mmasim:,}" if each.mmasim else "–"
        exact = "yes" if each.exact else ""
        behind = f"{each.kind}: {each.whose}" if each.whose else each.kind
        lines.append(
            f"| {i.architecture} | {i.name} | {behind} | {outputs_} | {_names(each.alike) or '–'} | {mmasim} | "
            f"{exact} |"
        )
    return _HEAD + "\n".join([*lines, *_specified(), *_states()]) + "\n"


def _specified() -> list[str]:
    """The lines about units that are found by name, and not listed."""
    lines = [
        "",
        "## Specified, never run",
        "",
        "Not listed, and found by name: a text defines them, and no output of hardware is here (specified.md).",
        "",
        "| architecture | instruction | behind it | in part open |",
        "|---|---|---|---|",
    ]
    for name in SPECIFIED_UNITS:
        for i in ARCHITECTURES[name]:
            each = backing(i)
            assert each is not None
            lines.append(f"| {name} | {i.name} | {each.kind}: {each.whose} | {opened(i) or '–'} |")
    return lines


#: The architecture whose instructions act on a state.
_STATEFUL = "apple_amx"


def _states() -> list[str]:
    """Return the lines about Apple AMX's instructions, which act on a state."""
    from mmaformal.apple import NUMBERS

    recorded = dict.fromkeys(NUMBERS, 0)
    for each in _facts()["states"]:
        for name, rows in each["rows"].items():
            recorded[name] += rows
    lines = [
        "",
        "## Apple AMX, by instruction",
        "",
        "Instructions on a state of X, Y and Z (apple-amx.md), no dot product-adds but fma's. *Recorded*: states of a",
        "file, every byte reproduced. *Digests*: states whose bytes after, as the emulator has them, are kept as a",
        "digest in tests/package/test_apple_states.py, generations M1 to M4. None was compared with the silicon here.",
        "",
        "| instruction | behind it | recorded | digests |",
        "|---|---|---:|---:|",
    ]
    for name in NUMBERS:
        lines.append(
            f"| {name} | {EMULATOR}: {EMULATORS[_STATEFUL]} | {recorded[name] or '–'} | {STATE_DIGESTS} |"
        )
    lines += [f"| {name} | {SPECIFICATION}: corsix/amx, setclr.md | – | – |" for name in ("set", "clr")]
    return lines


def _is(each: Backing, architecture: str) -> bool:
    return each.instruction.architecture == architecture


def save_backing(facts: BackingFacts, path: Path) -> None:
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _facts.cache_clear()
    _recorded_instructions.cache_clear()
