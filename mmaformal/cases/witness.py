"""The report of a case that shows something: its inputs, what was made of them, and what that shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from mmaformal.brief import products_text
from mmaformal.cases.inputs import Codes
from mmaformal.display import HtmlText, ShortRepr, counted, minimality_lines, short_text
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.shown_stages import code_text, input_lines, number_text
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Run(ShortRepr):
    """Inputs, and what is made of them."""

    title: str  #: what it is, in a few words; empty where it needs none
    spec: DotAdd
    codes: Codes
    result: int  #: the code of d

    def to_json(self) -> dict[str, object]:
        sides = {name: [_hex(x, fmt) for x in side] for name, side, fmt in _sides(self.spec, self.codes)}
        inputs = {**sides, "c": _hex(self.codes.c, self.spec.c_format)}
        return {"what": self.title, **inputs, "d": _hex(self.result, self.spec.d_format)}


@dataclass(frozen=True, repr=False)
class CaseWitness(HtmlText):
    """A case that shows something: one run, or several whose results are not as they should be."""

    instruction: Instruction
    runs: tuple[Run, ...]
    exact: Fraction | None = (
        None  #: c + Σ a·b of the first run, where that is what its result is compared with
    )
    notes: tuple[str, ...] = ()  #: what is to be seen
    minimality: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()  #: a computation told stage by stage, in lines

    @property
    def codes(self) -> Codes:
        """The inputs of the first run."""
        return self.runs[0].codes

    @property
    def results(self) -> tuple[int, ...]:
        """The codes of d, run by run."""
        return tuple(run.result for run in self.runs)

    def to_json(self) -> dict[str, object]:
        return {
            "instruction": self.instruction.label,
            "types": self.instruction.spec.types,
            "runs": [run.to_json() for run in self.runs],
            "exact": None if self.exact is None else str(self.exact),
            "notes": list(self.notes),
            "minimality": list(self.minimality),
            **({"stages": list(self.stages)} if self.stages else {}),
        }

    @property
    def summary(self) -> str:
        """One line: the products that are not zero, c, and the results."""
        first, *others = self.runs
        text = f"{case_text(first.spec, first.codes)} gives {first.spec.d_format.text(first.result)}"
        text += f" ({first.title})" if first.title else ""
        if self.exact is not None:
            text += f", exactly {number_text(self.exact)}"
        return "; ".join([text, *(f"{run.title}: {run.spec.d_format.text(run.result)}" for run in others)])

    def __str__(self) -> str:
        return self._text(whole=False)

    def verbose(self) -> str:
        """`str` of it, with every product."""
        return self._text(whole=True)

    def _text(self, whole: bool) -> str:
        lines: list[str] = []
        for _, some in groupby(self.runs, lambda run: (run.spec, run.codes)):
            first, *others = some
            title, *inputs = inputs_text(first.spec, first.codes, whole)
            lines += ["", title.replace("inputs", first.title, 1)] if lines else [title]
            lines += inputs
            if self.exact is not None and first is self.runs[0]:
                lines.append("  exact".ljust(14) + number_text(self.exact))
            results = [(f"  {run.title if others else 'd'} ", run) for run in (first, *others)]
            wide = max(14, *(len(name) + 1 for name, _ in results))
            lines += [name.ljust(wide) + code_text(run.result, run.spec.d_format) for name, run in results]
        if self.stages:
            lines += ["", *self.stages]
        if self.notes:
            lines += ["", *self.notes]
        if self.minimality:
            lines += ["", *minimality_lines(self.minimality)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return short_text(self, self.instruction.label, self.summary, *self.notes[:1])


def _hex(code: int, fmt: Format) -> str:
    return f"{code:#0{2 + -(-fmt.storage_bits // 4)}x}"


def _sides(spec: DotAdd, codes: Codes) -> Iterator[tuple[str, Sequence[int], Format]]:
    yield "a", codes.a, spec.a_format
    yield "b", codes.b, spec.b_format
    if spec.scale_format is not None:
        yield "scale_a", codes.scale_a, spec.scale_format
        yield "scale_b", codes.scale_b, spec.scale_format


def inputs_text(spec: DotAdd, codes: Codes, whole: bool = False) -> list[str]:
    """The inputs, equal ones on one line, but for products of two codes 0; c, then the scales, come last."""
    shown = [k for k in range(spec.k) if codes.a[k] or codes.b[k]]
    hidden = spec.k - len(shown)
    lines = ["inputs" + (f"  ({counted(hidden, 'product')} of the codes 0 not shown)" if hidden else "")]
    a, b, c, *scales = codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b
    return [*lines, *input_lines(spec, a, b, c, *scales, shown=shown, width=14, whole=whole)]


def case_text(spec: DotAdd, codes: Codes) -> str:
    """Describe the inputs of a case in one line."""
    a, b = spec.a_format, spec.b_format
    products = {k: pair for k, pair in enumerate(zip(codes.a, codes.b, strict=True)) if any(pair)}
    parts = products_text(
        products,
        lambda where, pair: f"a[{where}]·b[{where}] = {a.text(pair[0])}·{b.text(pair[1])}",
        lambda k, pair: f"a{k}·b{k} = {a.text(pair[0])}·{b.text(pair[1])}",
    )
    parts.append(f"c = {spec.c_format.text(codes.c)}")
    if spec.scale_format is not None:
        parts.append(
            "scales " + ", ".join(spec.scale_format.text(x) for x in (*codes.scale_a, *codes.scale_b))
        )
    return ", ".join(parts)
