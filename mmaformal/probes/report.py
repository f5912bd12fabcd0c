"""The report of all probes on a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller, integer
from mmaformal.display import counted, html_folded
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.probes.box import Box, ProbedUnit, Response, power
from mmaformal.probes.exactness import carries_seen, products_exact
from mmaformal.probes.kept import KeptPlaces
from mmaformal.probes.masks import masked
from mmaformal.probes.model import Check, ReadModel, checked
from mmaformal.probes.modes import WORDS
from mmaformal.probes.rounding import SumRounding
from mmaformal.probes.special import Behaviour, Nans, nans, read_overflow, subnormals
from mmaformal.probes.steps import read_steps
from mmaformal.probes.sums import ProbedSum, read_sums
from mmaformal.probes.tree import Tree, flat
from mmaformal.probes.zeros import KnownZeros, ZeroExponent, ZeroSign, read_zero_exponent, signs
from mmaformal.result import Result
from mmaformal.solver.deadline import checked_timeout, last_within
from mmaformal.spaces.common import Types

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Masked sums are half as many rows as the cube of this.
MOST_PRODUCTS = 96

#: Words in place of what was not read.
_TIME_UP = "the time was up"


@dataclass(frozen=True, repr=False)
class Probed(Result):
    """All that the probes read of a unit, told nothing but its types and K."""

    name: str
    types: Types
    k: int
    tree: Tree | None  #: None: not told, for the reason `order`
    order: str  #: how the order of summation was found, or why it was not
    sums: tuple[ProbedSum, ...]  #: the last one first
    exact_products: Behaviour
    carries: Behaviour
    zero_exponent: ZeroExponent | None  #: None where no sum is fused
    zeros: tuple[ZeroSign, ...]
    subnormals: tuple[Behaviour, ...]
    overflow: tuple[Behaviour, ...]
    nans: Nans
    asked: int = field(compare=False)  #: how many rows the unit was asked
    evidence: tuple[Response, ...] = field(compare=False)  #: of the order
    check: Check | None = None  #: the model read, run on other rows; None: it was not to be
    complete: bool = True  #: whether everything was read; if not, the time was up

    @property
    def verdict(self) -> str:
        """`read`; `wrong`: the model read gives other answers than the unit; `unknown`: the time was up."""
        if not self.complete:
            return "unknown"
        return "wrong" if self.check is not None and self.check.rows and not self.check.right else "read"

    @property
    def summary(self) -> str:
        """How many accumulator bits there are, in one line; and whether the model read is wrong somewhere."""
        if self.check is not None and self.check.rows and not self.check.right:
            return f"{self.name}: {self.check.says}; read, but not confirmed: {accumulator(self)}"
        return f"{self.name}: {accumulator(self)}"

    def __str__(self) -> str:
        t = self.types
        lines = [
            self.summary,
            f"{t.a} × {t.b} + {t.c} → {t.d}, K = {self.k}; {counted(self.asked, 'row')} asked",
            "",
            f"order of summation ({self.order})" if self.tree else f"order of summation: {self.order}",
        ]
        if self.tree is not None:
            lines += [f"  {line}" for line in self.tree.to_text().splitlines()]
            lines += _sum_lines(self.tree, self.sums)
        if self.check is not None:
            lines += ["", *self.check.lines(t)]
        lines += ["", *(f"{each.says}" for each in (self.exact_products, self.carries))]
        if self.zero_exponent is not None:
            lines.append(self.zero_exponent.says)
        lines += ["", *(f"{zero.case}: {zero.sign}" for zero in self.zeros)]
        lines += ["", *(each.says for each in (*self.subnormals, *self.overflow)), self.nans.says]
        if not self.complete:
            lines += ["", f"{_TIME_UP} before everything was read and checked: give it more with timeout="]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        drawn = (
            "" if self.tree is None else html_folded("the order of summation", self.tree.to_svg(), shown=True)
        )
        return super()._repr_html_() + drawn

    def rows(self) -> list[dict[str, object]]:
        """A dict for each thing that was read: what it is about, and what was found."""
        found = [("accumulator", accumulator(self)), ("order of summation", self.order)]
        if self.tree is not None:
            for number, title, lines in _sums_read(self.tree, self.sums):
                found.append((_numbered(number, title), "; ".join(lines)))
        if self.check is not None:
            found.append(("model", self.check.says))
        found += [(each.case, each.found) for each in (self.exact_products, self.carries)]
        if self.zero_exponent is not None:
            found.append(("zero terms", self.zero_exponent.says))
        found += [(each.case, each.sign) for each in self.zeros]
        found += [(each.case, each.found) for each in (*self.subnormals, *self.overflow)]
        return [{"about": about, "found": text} for about, text in (*found, ("NaN", self.nans.says))]

    def to_json(self) -> dict[str, object]:
        """Plain values, with rows that show each."""
        return {
            "unit": self.name,
            "summary": self.summary,
            "types": [fmt.name for fmt in self.types[:4]],
            "k": self.k,
            "rows": self.asked,
            "complete": self.complete,
            "order": {
                "told": self.tree is not None,
                "by": self.order,
                "c": self.tree.c_enters if self.tree else None,
                "tree": self.tree.to_json() if self.tree else None,
                "rows": [row.to_json() for row in self.evidence],
            },
            "sums": [each.to_json(self.tree) for each in self.sums if self.tree],
            "exact_products": self.exact_products.to_json(),
            "carries": self.carries.to_json(),
            "zero_exponent": self.zero_exponent and self.zero_exponent.to_json(),
            "zeros": [{"case": z.case, "sign": z.sign, "row": z.row.to_json()} for z in self.zeros],
            "subnormals": [each.to_json() for each in self.subnormals],
            "overflow": [each.to_json() for each in self.overflow],
            "nans": self.nans.to_json(),
            "check": self.check and self.check.to_json(),
        }


def accumulator(found: Probed) -> str:
    """Say what the accumulator keeps, as a sentence goes on after a name."""
    if not found.sums:
        return f"how many bits its accumulator keeps is not told: {found.order}"
    result = _result(found.sums[0].rounded)
    fused = [each for each in found.sums if each.fused]
    between = _between(found)
    if not fused:
        return f"{between or 'has no wide accumulator: every sum is of two terms'}; {result}"
    result = f"{between}; {result}" if between else result
    each = max(fused, key=lambda x: x.terms)
    kept = each.kept
    if kept is None:
        return f"how many bits its accumulator keeps cannot be told by these types; {result}"
    terms = f"the largest of {each.terms} terms that are summed at once"
    if kept.more:
        return (
            f"loses no bit within {kept.places} places below {terms}, as far as these types reach; {result}"
        )
    return f"keeps {kept.places} fractional bits below {terms}; {result}"


def _between(found: Probed) -> str:
    """Say what sums keep for the next ones, if that is more than results have, or if it is not told; else nothing."""
    last = found.sums[0].rounded
    inner = [each.carried for each in found.sums[1:]]
    told = [kept for kept in inner if kept is not None]
    wide = [kept for kept in told if last.places is None or last.more or kept.places > last.places]
    if wide:
        kept = min(wide, key=lambda each: each.places)
        return f"keeps {kept.count} fractional bits from one sum to the next{_ways(kept)}"
    if len(told) < len(inner) and not any(each.fused for each in found.sums):
        return "adds two terms at a time; what is kept from one sum to the next cannot be told by these types"
    return ""


def _ways(kept: KeptPlaces) -> str:
    return f", rounded {' or '.join(f'{WORDS[name]} ({name})' for name in kept.cut)}" if kept.cut else ""


def _result(found: SumRounding) -> str:
    """`results have 23, rounded toward zero (RZ)`."""
    if found.places is None:
        return "how results are rounded cannot be told by these types"
    places = f"results have {found.places}{' or more' if found.more else ''}"
    if found.why_not or not found.names:
        return places
    return f"{places}, rounded {' or '.join(f'{WORDS[name]} ({name})' for name in found.names)}"


def _sums_read(tree: Tree, sums: tuple[ProbedSum, ...]) -> Iterator[tuple[int, str, list[str]]]:
    """How many sums are the same, the title of the first one, and what was read of them."""
    read: dict[tuple[str, ...], int] = {}
    for each in reversed(sums):
        key = (tree.title(each.node), *each.lines(tree.k, each is sums[0]))
        read[key] = read.get(key, 0) + 1
    for (title, *lines), number in read.items():
        yield number, title, lines


def _numbered(number: int, title: str) -> str:
    return f"{counted(number, 'sum')} alike: {title}" if number > 1 else title


def _sum_lines(tree: Tree, sums: tuple[ProbedSum, ...]) -> Iterator[str]:
    """Yield lines on what was read of each sum; of sums that are alike, once."""
    for number, title, lines in _sums_read(tree, sums):
        yield f"  {_numbered(number, title)}"
        yield from (f"    {line}" for line in lines)


def probe(
    unit: Instruction | str | Callable[..., ArrayLike],
    *,
    k: int | None = None,
    a_format: Format | str | None = None,
    b_format: Format | str | None = None,
    c_format: Format | str | None = None,
    d_format: Format | str | None = None,
    name: str | None = None,
    check: int = 1000,
    timeout: float = 600.0,
    progress: Progress | None = None,
) -> Probed:
    """Read the arithmetic of a unit from its answers to chosen inputs: order, accumulator, roundings, special values.

    `unit`: an instruction of the registry, or its name ("hopper HMMA.16816.F32"), with scales of 1 where it has block
    scales; or any function of codes of a and b, shape (n, K), and of c, (n,), that returns codes of d, (n,), as
    unsigned integers; then K and the formats are needed, those of b and d where they are not a's and c's.  Nothing else
    is known of it.  check: rows on which the model read is run.  timeout: seconds for everything; where they are up,
    the report has what was read until then, and says so.  progress: called with a line of text as the work goes on.

    Raises ValueError for a K beyond `MOST_PRODUCTS` and for answers that are no codes of d, TypeError for formats and K
    missing, or given beside an instruction.
    """
    caller(progress)
    say = progress or (lambda _: None)
    formats = {"a_format": a_format, "b_format": b_format, "c_format": c_format, "d_format": d_format}
    given: dict[str, object] = {"k": k, **formats}
    if isinstance(unit, str):
        unit = instruction_meant(unit)
    if isinstance(unit, Instruction):
        extra = [key for key, value in given.items() if value is not None]
        if extra:
            raise TypeError(f"{unit.label} has its own K and formats: {extra[0]} is not to be given")
        s = unit.spec
        types = Types(s.a_format, s.b_format, s.c_format, s.d_format)
        box = Box(_of_instruction(unit), types, unit.k)
        return _probed(box, unit.label if name is None else name, check, timeout, say)
    if not callable(unit):
        raise TypeError(f"a unit is an Instruction or a function, not {unit!r}")
    given |= own_types(unit, given)
    for side, other in (("b", "a"), ("d", "c")):
        if given[f"{side}_format"] is None:
            given[f"{side}_format"] = given[f"{other}_format"]
    missing = [key for key in ("k", "a_format", "c_format") if given[key] is None]
    if missing:
        raise TypeError(
            f"of a function, {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed"
        )
    a, b, c, d = (Format.named(given[f"{side}_format"], f"{side}_format") for side in "abcd")

    def answer(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(unit(a, b, c))

    shown = str(getattr(unit, "__name__", getattr(unit, "name", "the unit"))) if name is None else name
    return _probed(Box(answer, Types(a, b, c, d), integer(given["k"], "k")), shown, check, timeout, say)


def own_types(unit: object, given: Mapping[str, object]) -> dict[str, object]:
    """The K and formats that a unit itself says that it takes (`mmaformal.from_rtl`), where none are given."""
    takes = getattr(unit, "takes", None)
    return dict(takes) if isinstance(takes, dict) and all(x is None for x in given.values()) else {}


def _of_instruction(instruction: Instruction) -> ProbedUnit:
    """The instruction as a function of a, b and c; with block scales, they are 1."""
    spec = instruction.spec
    if spec.scale_format is None:
        return instruction.dot_add
    one = spec.scale_format.code("1")

    def answer(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        scales = np.full((1, spec.scales), one, spec.scale_format.word if spec.scale_format else np.uint8)
        return instruction.dot_add(a, b, c, scales, scales)

    return answer


def _probed(box: Box, name: str, check: int, timeout: float, say: Progress) -> Probed:
    if not 1 <= box.k <= MOST_PRODUCTS:
        raise ValueError(
            f"K = {box.k}: 1 to {MOST_PRODUCTS} products can be probed; a longer chain repeats its steps"
        )
    nothing = _nothing_read(box, name)
    found, expired = last_within(checked_timeout(timeout), _readings(box, nothing, check, say), nothing)
    return replace(found, asked=box.asked, complete=False) if expired else found


def _nothing_read(box: Box, name: str) -> Probed:
    """The report before anything is asked."""
    return Probed(
        name,
        box.types,
        box.k,
        tree=None,
        order=_TIME_UP,
        sums=(),
        exact_products=Behaviour("the last bit of a product", f"not told, for {_TIME_UP}"),
        carries=Behaviour(f"{box.k + 1} terms of 1", f"not told, for {_TIME_UP}"),
        zero_exponent=None,
        zeros=(),
        subnormals=(),
        overflow=(),
        nans=Nans(f"NaN: not told, for {_TIME_UP}", (), ()),
        evidence=(),
        asked=0,
    )


def _readings(box: Box, found: Probed, check: int, say: Progress) -> Iterator[Probed]:
    """The report with more and more of what is read, what takes few rows first."""
    say("products, carries and special values")
    yield (found := replace(found, exact_products=products_exact(box), carries=carries_seen(box)))
    yield (found := replace(found, zeros=signs(box), nans=nans(box)))
    yield (found := replace(found, subnormals=subnormals(box), overflow=read_overflow(box)))
    say("the order of summation")
    tree, order, evidence = _order(box)
    sums: tuple[ProbedSum, ...] = ()
    if tree is not None:
        say(f"what sums keep; {box.asked:,} rows asked")
        tree, sums = read_sums(box, tree)
    yield (found := replace(found, tree=tree, order=order, sums=sums, evidence=evidence))
    yield (found := replace(found, zero_exponent=_zero_exponent(box, sums), asked=box.asked))
    if check:
        say(f"the model read, on other rows; {box.asked:,} rows asked")
        yield replace(found, check=_checked(box, found, check))


def _checked(box: Box, found: Probed, rows: int) -> Check:
    """The model that was read, run on other rows."""
    told = found.exact_products, found.zero_exponent, found.subnormals
    return checked(box, partial(ReadModel, box.types, found.tree, found.sums, *told), rows)


def _order(box: Box) -> tuple[Tree | None, str, tuple[Response, ...]]:
    """The order of summation, by masked sums, or by c alone where nothing is lost among three products."""
    found = masked(box)
    tree = found.tree
    if tree is None or not tree.root.lossless or len(tree.nodes) > 1:
        return tree, found.says, found.rows
    by_c, reach = read_steps(box, _fraction_bits(box)), found.large - found.small
    far = reach > 2 * (box.types.d.fraction_bits + 1)  # farther than a sum of two results could keep
    if isinstance(by_c, str):
        if far:
            return tree, f"{found.says}; nothing is lost over {reach} places", found.rows
        return None, f"cannot be told by these types: masked sums lose nothing, and {by_c}", found.rows
    node, rows = by_c
    if far and node.open and node.places == frozenset(node.children):
        return tree, f"{found.says}; nothing is lost over {reach} places", found.rows
    return Tree(node, box.k), f"by c alone: masked sums lose nothing over the {reach} places there are", rows


def _fraction_bits(box: Box) -> int:
    """Fractional places of c that are in a result."""
    most = min(box.types.c.fraction_bits, box.types.d.fraction_bits)
    rows = box.ask([{box.c: 1 + power(-places)} for places in range(1, most + 1)])
    wanted = [Fraction(1) + power(-places) for places in range(1, most + 1)]
    return sum(1 for row, x in zip(rows, wanted, strict=True) if box.number(row) == x)


def _zero_exponent(box: Box, sums: tuple[ProbedSum, ...]) -> ZeroExponent | None:
    """Read the exponent of zeros off the fused sum with most products of its own; c enters it first if it is a term."""
    fused = [each for each in sums if each.fused and each.kept is not None]
    if not fused:
        return None
    own = [sorted(x for x in flat(s.node).children if isinstance(x, int) and x < box.k) for s in fused]
    each, places = max(zip(reversed(fused), reversed(own), strict=True), key=lambda pair: len(pair[1]))
    beside = each.beside_c.kept if each.beside_c else None
    kept, c_kept = beside or each.kept, each.c or beside
    if kept is None or kept.more or len(places) < 2:
        return ZeroExponent(None, None, None, ())
    last = sums[0].rounded  # what d has
    known = KnownZeros(
        (places[0], places[1]),
        kept.places,
        product=None if each.product is None else each.product.places,
        c=c_kept.places if c_kept and c_kept.cut and box.c in each.node.places else None,
        result=last.places if last.places == each.rounded.places and not last.more else None,
    )
    return read_zero_exponent(box, known)
