"""Readings of the probes of every model of the registry, beside its parameters: tables/probes.md.

    python tools/docs/probe_table.py --out tables/probes.md

The probes are told nothing but types and K.  Each parameter is `read`, when what was read is what the model has;
`bounded`, when the types reach no farther and what was read is true; `not told`, when the types cannot tell; `WRONG`
otherwise, which no line may be.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click
from property_table import distinct

from mmaformal.cli.running import REFUTED, SETTLED, run_command
from mmaformal.display import ShortRepr
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.probes import Probed, probe
from mmaformal.probes.kept import KeptPlaces
from mmaformal.probes.modes import MODES
from mmaformal.probes.rounding import SumRounding
from mmaformal.probes.sums import ProbedSum
from mmaformal.probes.tree import Tree, flat
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel
from mmaformal.summation import Node

READ, BOUNDED, NOT_TOLD, WRONG = "read", "bounded", "not told", "WRONG"


@dataclass(frozen=True, repr=False)
class Line(ShortRepr):
    """One parameter of a model, and what the probes read."""

    parameter: str
    model: str
    found: str
    verdict: str


def compare(spec: DotAdd, found: Probed) -> list[Line]:
    """Each parameter of a model against what the probes read of it."""
    lines = [_order(spec, found)]
    for parameter, model, each in _readings(spec, found):
        lines.append(Line(parameter, "all" if model == MOST_EXACT else str(model), *_verdict(model, each)))
    return [*lines, *_roundings(spec, found), *_behaviour(spec, found)]


# ---- the order of summation --------------------------------------------------------------------------------------


def _order(spec: DotAdd, found: Probed) -> Line:
    model, tree = Tree.of(spec), found.tree
    text = f"c {model.c_enters}; sums of {_sizes(model)}"
    if tree is None:
        return Line("order", text, "–", NOT_TOLD)
    if tree.shape == model.shape:
        verdict = READ
    else:
        unseen = any(not each.groups_told for each in found.sums) and _within(tree, model)
        verdict = BOUNDED if unseen else WRONG
    return Line("order", text, f"c {tree.c_enters}; sums of {_sizes(tree)}", verdict)


def _within(found: Tree, model: Tree) -> bool:
    """Whether the model is what was found, but for what is summed exactly before c meets it, or before it is cut."""
    return found.flat().shape == model.flat().shape or _by_c(found.root, found.k) == _by_c(
        model.root, model.k
    )


def _by_c(node: Node, c: int) -> list[frozenset[int]]:
    """Return what c meets, in order: the products of each of its sums."""
    inner = next((x for x in node.children if isinstance(x, Node) and c in x.places), None)
    before = [] if inner is None else _by_c(inner, c)
    return [*before, node.places - {c} - (frozenset() if inner is None else inner.places)]


def _sizes(tree: Tree) -> str:
    """`9, twice`, of the terms of each sum."""
    counts = Counter(len(node.children) for node in tree.flat().sums)
    return ", ".join(f"{size} terms{f' ×{n}' if n > 1 else ''}" for size, n in sorted(counts.items()))


# ---- places kept -------------------------------------------------------------------------------------------------


def _readings(spec: DotAdd, found: Probed) -> Iterator[tuple[str, int, KeptPlaces | None]]:
    """Places that the model keeps, and what was read."""
    p, fused = spec.parameters, [each for each in found.sums if each.fused]
    best = max(fused, key=lambda each: each.terms, default=None)
    match p.loss:
        case LossModel.ROUND_DOWN:
            assert isinstance(p, Fdrda)
            yield from _of_fdrda(p, best, _c_itself(found))
        case LossModel.TERMS | LossModel.INNER if "F" in p:
            yield "F", p.kept_places(spec), _of_terms(spec, found, fused, best)
        case LossModel.GROUPS:
            yield "F", p.kept_places(spec), best.beside_c.kept if best and best.beside_c else None
        case LossModel.HALVES | LossModel.PASSES:
            exact = p.loss is LossModel.HALVES and p.loses_no_product(spec)
            yield "F", MOST_EXACT if exact else p.kept_places(spec), best.kept if best else None
        case LossModel.NOTHING | LossModel.INNER if best is not None:
            yield "places kept", MOST_EXACT, best.kept


def _of_terms(
    spec: DotAdd, found: Probed, fused: list[ProbedSum], best: ProbedSum | None
) -> KeptPlaces | None:
    """Return what was read of terms that are cut; of inner steps, whose c is theirs, of the products alone."""
    p, inner = spec.parameters, spec.parameters.made_of(spec) is not None
    cut = found.sums[0].rounded.cut_at if found.sums and not inner else None
    alone = KeptPlaces(cut, False, (), 0, ()) if cut is not None else None
    each = [x.product if inner else x.kept for x in fused]
    wrong = next((kept for kept in each if _verdict(p.kept_places(spec), kept)[1] == WRONG), None)
    first = best.product if best and inner else best.kept if best else alone
    return wrong or first


#: stands for "all places" of a sum that is exact
MOST_EXACT = 1 << 20


def _c_itself(found: Probed) -> KeptPlaces | None:
    """Return what was read of c where it is a term itself, and does not come through another sum."""
    return next((each.c for each in found.sums if found.k in flat(each.node).children), None)


def _of_fdrda(
    p: Fdrda, best: ProbedSum | None, c: KeptPlaces | None
) -> Iterator[tuple[str, int, KeptPlaces | None]]:
    yield "F (products)", p.F, best.product if best else None
    reach = p.F if p.reach is None else min(p.F, p.reach)
    yield "F (c)", reach, c
    beside = best.beside_c.kept if best and best.beside_c else None
    in_dot = (
        p.cut is Rounding.RZ and p.rho.rounding is Rounding.RZ
    )  # what the cuts leave, the last rounding shows
    yield "dot_bits, sum_bits", p.dot_bits if in_dot else min(p.dot_bits, p.sum_bits or p.dot_bits), beside
    if best and best.beside_c and best.beside_c.normalised_cut is not None:
        cut = best.beside_c.normalised_cut
        yield "sum_bits", p.sum_bits or MOST_EXACT, KeptPlaces(cut, False, (), 0, ())
        places, more = best.beside_c.aligned or (0, True)
        yield "dot_bits", p.dot_bits, KeptPlaces(places, more, (), 0, ())
    if p.reach is not None and c is not None and c.reach is not None:
        yield "c_reach", p.reach, KeptPlaces(c.reach, False, (), 0, ())


def _verdict(model: int, kept: KeptPlaces | None) -> tuple[str, str]:
    if kept is None:
        return "–", NOT_TOLD
    if kept.more:
        return f"≥ {kept.places}", BOUNDED if kept.places <= model else WRONG
    return str(kept.places), READ if kept.places == model else WRONG


# ---- roundings ---------------------------------------------------------------------------------------------------


def _roundings(spec: DotAdd, found: Probed) -> Iterator[Line]:
    p = spec.parameters
    yield _rounding("ρ", p.last_rounding, found.sums[:1])
    if (steps := p.made_of(spec)) is not None:
        inner = [each for each in found.sums if each.fused and spec.k not in each.node.places]
        yield _rounding("ρ of the steps", steps.parameters.last_rounding, inner[:1])
    if p.aligns:
        cut, dropped = Rounding.RO if p.cuts_to_odd else Rounding.RZ, False
        yield _cut("cut of products", cut, [each.product for each in found.sums])
        if p.loss is LossModel.ROUND_DOWN:
            assert isinstance(p, Fdrda)
            cut, dropped = p.cut, p.reach is not None and p.reach <= p.F  # before it would be cut
        yield _cut("cut of c", cut, [] if dropped else [_c_itself(found)])


def _cut(name: str, model: Rounding, found: list[KeptPlaces | None]) -> Line:
    ways = [kept.cut for kept in found if kept is not None and not kept.more]
    lines = [Line(name, model.name, " or ".join(way) or "–", _among(model.name, way)) for way in ways]
    order = (WRONG, BOUNDED, READ)
    return min(
        lines, key=lambda line: order.index(line.verdict), default=Line(name, model.name, "–", NOT_TOLD)
    )


def _rounding(name: str, rho: Conversion, sums: tuple[ProbedSum, ...] | list[ProbedSum]) -> Line:
    model = f"{rho.rounding.name}, {rho.fraction_bits} places"
    lines = [_of_one(name, model, rho, each.rounded) for each in sums]
    order = (WRONG, READ, BOUNDED, NOT_TOLD)
    return min(lines, key=lambda line: order.index(line.verdict), default=Line(name, model, "–", NOT_TOLD))


def _of_one(name: str, model: str, rho: Conversion, r: SumRounding) -> Line:
    if r.places is None:
        return Line(name, model, "–", NOT_TOLD)
    ways = " or ".join(r.names) if len(r.names) < len(MODES) else "any"
    text = f"{ways or '–'}, {'≥ ' if r.more else ''}{r.places} places"
    places = r.places <= rho.fraction_bits if r.more else r.places == rho.fraction_bits
    if not places:
        return Line(name, model, text, WRONG)
    if not r.names:
        return Line(name, model, text, BOUNDED if r.why_not else WRONG)
    verdict = _among(rho.rounding.name, r.names)
    return Line(name, model, text, BOUNDED if (r.more or r.why_not) and verdict == READ else verdict)


def _among(name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        return WRONG
    return READ if len(names) == 1 else BOUNDED


# ---- zeros, subnormal numbers, NaNs ------------------------------------------------------------------------------


def _behaviour(spec: DotAdd, found: Probed) -> Iterator[Line]:
    p = spec.parameters
    if found.zero_exponent is not None and p.zero_exponent(spec) is not None:
        yield _zero_exponent(spec, found)
        if p.loss is LossModel.ROUND_DOWN:
            assert isinstance(p, Fdrda)
            fields = found.zero_exponent.fields
            told = "–" if fields is None else "they count" if fields else "they do not"
            model = "they do not" if p.skip_zero_products else "they count"
            yield Line(
                "zero products", model, told, NOT_TOLD if fields is None else READ if told == model else WRONG
            )
    for each in found.subnormals:
        flushed = _flushes(spec, each.case)
        model = {True: "flushed to zero", False: "kept", None: "not said by one parameter"}[flushed]
        silent = each.does is None or flushed is None
        verdict = NOT_TOLD if silent else READ if each.does == model else WRONG
        yield Line(each.case, model, each.does or "–", verdict)
    zero = next((z.sign for z in found.zeros if z.case == "all terms −0"), None)
    if zero is not None:  # one row of the model itself: nothing is concluded that could be wrong
        yield Line("all terms −0", zero, zero, READ)
    yield _nan(spec, found)


def _flushes(spec: DotAdd, case: str) -> bool | None:
    """Whether a case of `special.subnormals` is flushed to zero; None where that takes more than one operation.

    In a chain of steps that flush their operands the next one flushes a subnormal sum.  A flushed fma
    multiplies in fp32, in which subnormal numbers of fp16 are normal.
    """
    p = spec.parameters
    given = dict.fromkeys(p.keys())
    if "flush" in given:  # of results, and c alone is one
        return bool(p["flush"]) and case not in ("a subnormal a", "a subnormal b")
    if "flush_inputs" not in given:
        fmt = {"a subnormal a": spec.a_format, "a subnormal b": spec.b_format}.get(case, fp32)
        return p.flushing is not None and ("tiny" not in given or fmt.min_exponent <= fp32.min_exponent)
    operands, results = bool(p["flush_inputs"]), "tiny" in given and p["tiny"] is not None
    if case in ("a subnormal a", "a subnormal b"):
        return operands
    if operands and spec.k > p.step_products:
        return None
    if case == "a subnormal c":
        return operands or (results and spec.c_format.min_exponent <= spec.d_format.min_exponent)
    return results


def _zero_exponent(spec: DotAdd, found: Probed) -> Line:
    p, each = spec.parameters, found.zero_exponent
    exponent = p.zero_exponent(spec)
    assert each is not None
    assert exponent is not None
    name = "e_zero" if "e_zero" in p else "exponent of zero"
    if each.exponent is not None:
        return Line(name, str(exponent), str(each.exponent), READ if each.exponent == exponent else WRONG)
    if each.at_most is None:
        return Line(name, str(exponent), "–", NOT_TOLD)
    return Line(name, str(exponent), f"≤ {each.at_most}", BOUNDED if exponent <= each.at_most else WRONG)


def _nan(spec: DotAdd, found: Probed) -> Line:
    p, rule = spec.parameters, found.nans.rule
    if (spec.product_sign, spec.c_sign) != (1, 1) and rule is not None and rule.startswith("NaN: no NaN of"):
        return Line(
            "NaN", "not all: signs are changed, or c is not read", rule.removeprefix("NaN: "), NOT_TOLD
        )
    text = (rule or "–").removeprefix("NaN: ")
    if rule is None or not spec.nan_is_canonical:
        return Line("NaN", "not known" if not spec.nan_is_canonical else "canonical", text, NOT_TOLD)
    model = f"the first of {p.first_nan}, made quiet" if p.first_nan else "always 0x"
    return Line("NaN", model.replace("0x", "the same"), text, READ if text.startswith(model) else WRONG)


# ---- the page ----------------------------------------------------------------------------------------------------


def page(progress: Callable[[str], None]) -> tuple[str, int]:
    """The page, and how many lines of it are wrong."""
    rows, counts, checks = [], Counter[str](), Counter[str]()
    for spec, instructions in distinct().items():
        found = probe(instructions[0])
        lines = compare(spec, found)
        counts.update(line.verdict for line in lines)
        checks.update([_kind(found)])
        rows.append(_row(instructions[0], found, lines))
        progress(
            f"{instructions[0].label}: {', '.join(x.parameter for x in lines if x.verdict == WRONG) or 'right'}"
        )
    head = _HEAD.format(**_counted(counts), **_checks(checks), specs=len(rows))
    return head + "\n".join(rows) + "\n", counts[WRONG]


def _kind(found: Probed) -> str:
    """Say what became of the model that was read."""
    assert found.check is not None
    return "right" if found.check.right else "partly" if found.check.rows else "none"


def _checks(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("right", "partly", "none")}


def _counted(counts: Counter[str]) -> dict[str, int]:
    names = {READ: "read", BOUNDED: "bounded", NOT_TOLD: "untold", WRONG: "wrong"}
    return {name: counts[verdict] for verdict, name in names.items()}


def _row(instruction: Instruction, found: Probed, lines: list[Line]) -> str:
    read = "; ".join(_alike([(x.parameter, x.found) for x in lines if x.verdict == READ]))
    bounded = "; ".join(
        f"{x.parameter}: {x.found} (model: {x.model})" for x in lines if x.verdict in (BOUNDED, WRONG)
    )
    untold = ", ".join(x.parameter for x in lines if x.verdict == NOT_TOLD)
    model = f"{instruction.algorithm} {instruction.parameters.describe()}".strip()
    told = f"{read} | {bounded or '–'} | {untold or '–'} | {_reproduced(found)}"
    return f"| {instruction.label} | {model} | {told} | {found.asked:,} |"


def _reproduced(found: Probed) -> str:
    """How many rows the model that was read gives, or why there is none."""
    check = found.check
    assert check is not None
    return f"{check.agree:,} of {check.rows:,}" if check.rows else check.why_not or "–"


def _alike(found: list[tuple[str, str]]) -> Iterator[str]:
    """`F: 24`; of several that read alike one after the other, once."""
    for text, run in groupby(found, key=lambda pair: pair[1]):
        yield f"{', '.join(name for name, _ in run)}: {text}"


_HEAD = """# What the probes read of every model

Made by `python tools/docs/probe_table.py --out tables/probes.md`; a test compares it with what is read.

Each of the {specs} specifications of the registry was probed as a black box: the probes (`mmaformal/probes/`)
know types and K and ask for results. Then each of its parameters was compared with what was read: **{read}** are read
back, of **{bounded}** what was read is true but goes no farther, since the types do not, **{untold}** cannot be told by
the types (or, of NaNs, the model leaves them open), **{wrong}** are wrong. What cannot be told is said to be so,
and not guessed.

Not read back of any: `dot_bits` beyond `sum_bits` + 1 (what is kept there is cut again after normalising); e_zero where
no product is small enough for a zero's exponent to matter (fp16 and fp8 with fp32 results); what a product below d's
range becomes where there is none. Block scales are 1.

The model that was read, a tree of sums with what each keeps, was then run on 1,000 rows of finite numbers whose
products and sums are in d's range, signs of zeros aside: of **{right}** specifications it gives every answer, of
**{partly}** not all (the column *reproduced* says how many), and of **{none}** what was read is not enough to make one
(the column says what is missing).

| instruction | model | read back | read as far as the types reach | not told | reproduced | rows |
|---|---|---|---|---|---|---|
"""


@click.command()
@click.option("--out", type=click.Path(path_type=Path), help="Where the page is written.")
def main(out: Path | None) -> int:
    """Probe every model of the registry and compare with its parameters."""
    text, wrong = page(lambda line: click.echo(line, err=True))
    if out is not None:
        out.write_text(text)
    else:
        click.echo(text)
    return REFUTED if wrong else SETTLED


if __name__ == "__main__":
    sys.exit(run_command(main, sys.argv[1:], "probe_table"))
