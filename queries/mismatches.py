"""Where does a model differ from what was recorded, in which stage, by the smallest example?

    found = explain_mismatches("rows.npz")              # against the instruction that was recorded
    print(found)                # found.groups: mismatching rows by the change of the model that explains them
    found.groups[0].answer      # the smallest input on which the model, and the model so changed, differ

A change is another value of one parameter (`mmaformal.spaces.variants`).  The changes that make most rows right are
taken, one after the other, until no row is wrong or no change makes fewer wrong; what no change explains is grouped by
what is seen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaformal.algorithms import Conversion, DotAdd, parameter_text
from mmaformal.architectures.known import known_as
from mmaformal.cases.codes import exponent_field, is_finite, is_nan, is_zero
from mmaformal.cases.inputs import Codes
from mmaformal.cases.questions import Progress
from mmaformal.cases.run import results
from mmaformal.display import ShortRepr, counted, minimality_lines
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.queries.classes import values_text
from mmaformal.queries.elimination import Recorded, differ, tabled
from mmaformal.queries.find_difference import find_difference
from mmaformal.recordings.check import Mismatch, NotModelledError, row_sizes
from mmaformal.recordings.read import Recording, read, require_fit
from mmaformal.solver.answers import Answer, Different
from mmaformal.spaces import variants
from mmaformal.spaces.common import Types

#: Rows that changes are tried on: mismatches, and as many that match.
_TRIED = 4096
#: Rows of each that the changes are put in an order by.
_FEW, _BEST = 48, 24
#: Seconds for one smallest input.
_EACH = 60.0

#: What a parameter is about: the stage, and what of it.
STAGES = {
    "F": "alignment: bits kept",
    "e_zero": "alignment: exponent of zero",
    "cut": "alignment: how bits are cut off",
    "dot_bits": "sum of products: bits kept",
    "sum_bits": "sum with c: bits kept",
    "c_reach": "sum with c: where c is dropped",
    "addition": "addition of c: rounding",
    "rho": "output rounding",
    "detects_zeros": "alignment: zero products",
    "L": "products of a step",
    "N": "products of a step",
    "D": "products in all",
    "G": "products of a group",
    "order": "order of products",
    "product_order": "order of products",
    "operands": "conversion of operands",
    "nan": "special values: which NaN",
    "tiny": "output rounding: when a result is tiny, and flushed",
    "inputs_first": "special values: infinities among inputs",
    "skip_zero_products": "special values: zero products",
}


@dataclass(frozen=True, repr=False)
class Group(ShortRepr):
    """Mismatching rows of one kind."""

    kind: str  #: the stage and what of it, or what is seen
    rows: int
    smallest: Mismatch
    change: tuple[str, object] | None = None  #: the parameter and its value that explain them
    answer: Answer | None = None  #: the model against the model so changed

    @property
    def explained(self) -> bool:
        return self.answer is not None


@dataclass(frozen=True, repr=False)
class Mismatches(ShortRepr):
    """Where a model and a recording differ."""

    recording: Recording
    instruction: Instruction  #: the model
    rows: int
    groups: tuple[Group, ...]
    candidate: Instruction | None  #: the model with the changes, if that explains every row
    #: other values of one parameter of it that explain every row too
    not_told: tuple[tuple[str, object], ...]
    tabled: tuple[str, ...]  #: instructions of the tables that explain every row
    seconds: float

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.groups)

    @property
    def count(self) -> int:
        return sum(each.rows for each in self.groups)

    @property
    def summary(self) -> str:
        """One line."""
        if not self.groups:
            return f"{self.instruction.label} explains all of {counted(self.rows, 'row')}"
        return (
            f"{self.instruction.label} gets {self.count:,} of {counted(self.rows, 'row')} wrong, "
            f"in {counted(len(self.groups), 'group')}"
        )

    def __str__(self) -> str:
        lines = [self.summary]
        for number, group in enumerate(self.groups, 1):
            first, *rest = self._group_lines(group)
            lines += [f"{number}. {first}", *(f"   {line}" for line in rest)]
        if self.candidate is not None:
            spec = self.candidate.spec
            lines.append(f"explains every row: {spec.text}")
            for name in dict.fromkeys(name for name, _ in self.not_told):
                values = values_text([value for each, value in self.not_told if each == name])
                lines.append(f"  not told by these rows: {name} ({values})")
        if self.groups and self.tabled:
            more = f" and {len(self.tabled) - 3} more" if len(self.tabled) > 3 else ""
            lines.append(f"of the tables, these explain every row: {', '.join(self.tabled[:3])}{more}")
        elif self.groups and self.candidate is None:
            lines.append("no changes of the model explain every row: `mmaformal diagnose` tries all models")
        return "\n".join(lines)

    def _group_lines(self, group: Group) -> list[str]:
        wrong = group.smallest
        d = self.instruction.d_format
        lines = [
            f"{group.kind}{self._changed(group)}: {counted(group.rows, 'row')}, the smallest row {wrong.row}: "
            f"recorded {_told(wrong.recorded, d)}, modelled {_told(wrong.modelled, d)}"
        ]
        if isinstance(group.answer, Different):
            w = group.answer.witness
            x, y = (_told(int(r), d) for r in w.results)
            lines.append(f"smallest input: {w.case_text}: modelled {x}, changed {y}")
            lines += [f"  {line}" for line in minimality_lines(group.answer.minimality)]
        elif group.answer is not None:
            lines.append(f"smallest input: {group.answer}")
        return lines

    def _changed(self, group: Group) -> str:
        if group.change is None:
            return ""
        name, value = group.change
        spec = self.instruction.spec
        was = spec.product_order or "as numbered" if name == "product_order" else spec.parameters[name]
        return f", {name} = {parameter_text(value, name)}, not {parameter_text(was, name)}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "file": str(self.recording.path),
            "model": {"instruction": self.instruction.label, "text": self.instruction.spec.text},
            "rows": self.rows,
            "mismatches": self.count,
            "groups": [
                {
                    "kind": group.kind,
                    "rows": group.rows,
                    "change": None
                    if group.change is None
                    else {group.change[0]: parameter_text(group.change[1], group.change[0])},
                    "smallest": group.smallest.to_json(self.instruction),
                    "answer": None if group.answer is None else group.answer.to_json(),
                }
                for group in self.groups
            ],
            "explained_by": None if self.candidate is None else self.candidate.spec.text,
            "tabled": list(self.tabled),
            "not_told": [[name, parameter_text(value, name)] for name, value in self.not_told],
            "seconds": round(self.seconds, 2),
        }


def explain_mismatches(
    recording: str | Path | Recording,
    instruction: Instruction | None = None,
    *,
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Mismatches:
    """The mismatching rows of a recording in groups, and what explains each.

    instruction: the model, by default that of the instruction recorded.  timeout: seconds for the smallest inputs.
    progress: called with a line of text as the work goes on.

    Raises RecordingError for what is no recording or does not fit, NotModelledError where there is no model.
    """
    start = time.monotonic()
    given = recording if isinstance(recording, Recording) else read(recording)
    model = instruction or given.instruction
    if model is None:
        raise NotModelledError(f"{given.path}: {given.label} is not modelled yet")
    require_fit(given, model)
    say = progress or (lambda _: None)
    rows = _File(given, model)
    wrong, right = rows.some()
    if not len(wrong):
        return Mismatches(given, model, given.rows, (), None, (), (), time.monotonic() - start)
    descent = _Descent(wrong, right, say)
    changes, nearest = descent.from_model(model.spec)
    explains = not rows.any_wrong(nearest)
    not_told = [
        (name, value)
        for name, spec in (descent.explaining(nearest) if explains else ())
        for value in _differing(nearest, spec).values()
        if not rows.any_wrong(spec)
    ]
    groups = rows.groups(changes)
    deadline = time.monotonic() + timeout
    groups = [_asked(model, group, deadline, say) for group in groups]
    return Mismatches(
        given,
        model,
        given.rows,
        tuple(groups),
        model.replace(**_differing(model.spec, nearest)) if explains else None,
        tuple(not_told),
        tuple(
            label
            for spec in tabled(Types.of(model.spec), model.k)
            if not rows.any_wrong(spec)
            for label in known_as(spec)
        ),
        seconds=time.monotonic() - start,
    )


def _told(code: int, fmt: Format) -> str:
    """A number, or the code of a NaN."""
    return f"NaN {code:#x}" if fmt.is_nan(code) else fmt.text(code)


def _differing(model: DotAdd, spec: DotAdd) -> dict[str, object]:
    """The parameters in which a model differs from another of its algorithm, and its values."""
    changed = {name: v for name in spec.parameters if (v := spec.parameters[name]) != model.parameters[name]}
    if spec.product_order != model.product_order:
        changed["product_order"] = spec.product_order
    return changed


def _asked(model: Instruction, group: Group, deadline: float, progress: Progress) -> Group:
    """The group with the smallest input on which its change shows."""
    left = deadline - time.monotonic()
    if group.change is None or left <= 1:
        return group
    name, value = group.change
    progress(f"the smallest input on which {name} shows")
    row = group.smallest
    known = Codes(row.a, row.b, row.c, row.scale_a, row.scale_b)
    answer = find_difference(model, model.replace(**{name: value}), known=known, timeout=min(left, _EACH))
    return Group(group.kind, group.rows, group.smallest, group.change, answer)


def kind_of(name: str, value: object, was: object) -> str:
    """The stage that a parameter is about."""
    if name == "rho" and isinstance(value, Conversion) and isinstance(was, Conversion):
        rounded = [(x.format, x.fraction_bits, x.rounding) for x in (value, was)]
        if rounded[0] == rounded[1]:
            return "sign of an exact zero"
    return STAGES[name]


# ---- the changes -----------------------------------------------------------------------------------------------------


class _Descent:
    """From a model to one that gets fewer rows wrong, one parameter at a time."""

    def __init__(self, wrong: Recorded, right: Recorded, progress: Progress) -> None:
        self.wrong, self.right, self.progress = wrong, right, progress

    def from_model(self, spec: DotAdd) -> tuple[dict[str, object], DotAdd]:
        """The changes, those that make most rows right first; and the model with all of them."""
        current, wrong, path = spec, len(self.wrong), list[str]()
        while wrong:
            self.progress(f"{wrong:,} of {len(self.wrong):,} rows wrong: {current.text}")
            ranked = self._ranked(current)
            if not ranked or ranked[0][0] >= wrong:
                break
            wrong, _, name, current = ranked[0]
            path.append(name)
        changes = _differing(spec, current)
        return {name: changes[name] for name in dict.fromkeys(path) if name in changes}, current

    def explaining(self, spec: DotAdd) -> list[tuple[str, DotAdd]]:
        """The models that differ from one in a parameter and explain all of the rows tried."""
        few = slice(0, _FEW)
        return [
            (name, each) for name, each in variants(spec) if not (self._wrong(each, few) or self._wrong(each))
        ]

    def _ranked(self, current: DotAdd) -> list[tuple[int, tuple[int, ...], str, DotAdd]]:
        """The best variants of a model, with how many rows each gets wrong."""
        few = slice(0, _FEW)
        tried = [
            (self._wrong(spec, few), (_distance(current, spec, name), place), name, spec)
            for place, (name, spec) in enumerate(variants(current))
        ]
        tried.sort(key=lambda each: each[:2])
        bound = tried[min(_BEST, len(tried)) - 1][0] if tried else 0
        best = [each for each in tried if each[0] <= bound]
        exact = [(self._wrong(spec), near, name, spec) for _, near, name, spec in best]
        return sorted(exact, key=lambda each: each[:2])

    def _wrong(self, spec: DotAdd, where: slice = slice(None)) -> int:
        return int(self.wrong.differ(spec, where).sum() + self.right.differ(spec, where).sum())


def _distance(x: DotAdd, y: DotAdd, name: str) -> int:
    """How far a value is from another; those of instructions that there are come first."""
    if known_as(y):
        return -1
    if name == "product_order":
        return 0
    u, v = x.parameters[name], y.parameters[name]
    return abs(u - v) if isinstance(u, int) and isinstance(v, int) else 0


# ---- the rows --------------------------------------------------------------------------------------------------------


class _File:
    """The rows of a recording, as a model takes them."""

    def __init__(self, recording: Recording, model: Instruction) -> None:
        self.recording, self.model, self.spec = recording, model, model.spec
        self.types = Types.of(self.spec)

    def blocks(self) -> Iterator[tuple[int, Recorded, NDArray[np.uint64]]]:
        """The first row of a block, the block, and what the model gives."""
        done = 0
        for block in self.recording.blocks():
            rows = Recorded.of(block, self.types, self.spec.k)
            yield done, rows, results(self.spec, rows.rows.codes)
            done += len(rows.d)

    def some(self) -> tuple[Recorded, Recorded]:
        """Rows that the model gets wrong, and rows that it gets right, those of the file's beginning."""
        found: tuple[list[Recorded], list[Recorded]] = [], []
        for _, rows, modelled in self.blocks():
            wrong = differ(self.spec, modelled, rows.d)
            for kept, which in zip(found, (wrong, ~wrong), strict=True):
                room = _TRIED - sum(map(len, kept))
                kept.append(rows.at(np.nonzero(which)[0][:room]))
        return Recorded.join(found[0]), Recorded.join(found[1])

    def any_wrong(self, spec: DotAdd) -> bool:
        return any(rows.differ(spec).any() for _, rows, _ in self.blocks())

    def groups(self, changes: dict[str, object]) -> list[Group]:
        """The mismatching rows, each by the first change that explains it alone, by all, or by what is seen."""
        kinds: dict[tuple[str, tuple[str, object] | None], _Smallest] = {}
        single = [
            (name, value, self.spec.replace(**{name: value})) for name, value in self._possible(changes)
        ]
        together = self.spec.replace(**changes) if len(changes) > 1 else None
        for first, block, modelled in self.blocks():
            where = np.nonzero(differ(self.spec, modelled, block.d))[0]
            rows, gives = block.at(where), modelled[where]
            left = np.ones(len(where), np.bool_)
            for name, value, spec in single:
                explained = left & ~rows.differ(spec)
                kind = kind_of(name, value, None if name == "product_order" else self.spec.parameters[name])
                self._add(kinds, (kind, (name, value)), first + where, rows, gives, explained)
                left &= ~explained
            if together is not None:
                explained = left & ~rows.differ(together)
                self._add(kinds, ("several of these together", None), first + where, rows, gives, explained)
                left &= ~explained
            for kind, seen in _seen(self.spec, rows.d, gives):
                self._add(kinds, (f"unexplained: {kind}", None), first + where, rows, gives, left & seen)
                left &= ~seen
        return [
            Group(kind, found.count, found.mismatch, change)
            for (kind, change), found in kinds.items()
            if found.mismatch is not None
        ]

    def _possible(self, changes: dict[str, object]) -> Iterator[tuple[str, object]]:
        """The changes that make sense alone."""
        for name, value in changes.items():
            try:
                self.spec.replace(**{name: value})
            except ValueError:
                continue
            yield name, value

    def _add(
        self,
        kinds: dict[tuple[str, tuple[str, object] | None], _Smallest],
        kind: tuple[str, tuple[str, object] | None],
        numbers: NDArray[np.intp],
        rows: Recorded,
        gives: NDArray[np.uint64],
        which: NDArray[np.bool_],
    ) -> None:
        chosen = np.nonzero(which)[0]
        if len(chosen):
            kinds.setdefault(kind, _Smallest()).add(
                self.spec, numbers[chosen], rows.at(chosen), gives[chosen]
            )


class _Smallest:
    """The smallest of some mismatching rows, and how many there are."""

    def __init__(self) -> None:
        self.count, self.size, self.mismatch = 0, tuple[int, ...](), None

    count: int
    size: tuple[int, ...]
    mismatch: Mismatch | None

    def add(self, spec: DotAdd, numbers: NDArray[np.intp], rows: Recorded, gives: NDArray[np.uint64]) -> None:
        self.count += len(numbers)
        x = rows.rows
        sizes = row_sizes(spec, *(side.astype(np.int64) for side in (x.a, x.b, x.c)))
        i = int(np.lexsort(sizes.T[::-1])[0])
        size = tuple(map(int, sizes[i]))
        if self.mismatch is None or size < self.size:
            case, recorded = rows.one(i)
            self.size = size
            codes = case.a, case.b, case.c
            self.mismatch = Mismatch(
                int(numbers[i]), *codes, recorded, int(gives[i]), case.scale_a, case.scale_b
            )


def _seen(
    spec: DotAdd, recorded: NDArray[np.uint64], modelled: NDArray[np.uint64]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Kinds of rows by their two results alone, the first that fits to be taken."""
    d = spec.d_format
    x, y = (codes.astype(np.int64) for codes in (recorded, modelled))

    def of(test: Callable[..., object], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(test(codes, d), np.bool_)

    yield "another NaN", of(is_nan, x) & of(is_nan, y)
    yield "a special value", ~of(is_finite, x) | ~of(is_finite, y)
    yield "the sign of zero", of(is_zero, x) & of(is_zero, y)
    tiny = [(np.asarray(exponent_field(codes, d)) == 0) & ~of(is_zero, codes) for codes in (x, y)]
    yield "a subnormal result", tiny[0] | tiny[1]
    same_sign = (x ^ y) & d.sign_mask == 0
    yield "one unit in the last place", same_sign & (np.abs(x - y) == 1 << d.ignored_low_bits)
    yield "more than one unit in the last place", np.ones(len(x), np.bool_)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m mmaformal.queries.mismatches FILE` is `mmaformal mismatches FILE`."""
    from mmaformal.cli import main as command

    return command(["mismatches", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
