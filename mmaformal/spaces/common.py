"""The parts that the spaces of several algorithms are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple, ParamSpec, TypeVar

from mmaformal.formats import Format
from mmaformal.rounding import CONVERSIONS, DETERMINISTIC, Conversion, Rounding
from mmaformal.spec import DotAdd, Parameters

P = TypeVar("P", bound=Parameters)
GivenP = ParamSpec("GivenP")

#: An exponent of zero below that of everything.
LOWEST = -4096


class Types(NamedTuple):
    """The formats of a dot product-add, and of its block scales, if it has any."""

    a: Format
    b: Format
    c: Format
    d: Format
    scale: Format | None = None
    scale_block: int = 0  #: products per pair of scales

    @staticmethod
    def of(spec: DotAdd) -> Types:
        """Those of a model."""
        formats = spec.a_format, spec.b_format, spec.c_format, spec.d_format
        return Types(*formats, spec.scale_format, spec.scale_block)

    def __str__(self) -> str:
        scaled = f" (scales {self.scale}, one per {self.scale_block})" if self.scale else ""
        return f"{self.a} × {self.b} + {self.c} → {self.d}{scaled}"

    def model(self, k: int, parameters: Parameters, order: tuple[int, ...] = ()) -> DotAdd:
        """Return a model of k products.  Raises ValueError for what makes no sense or the encodings do not hold."""
        return DotAdd(k, *self[:4], parameters, self.scale, self.scale_block, product_order=order)


def divisors(k: int) -> list[int]:
    return [x for x in range(1, k + 1) if k % x == 0]


def conversions(fmt: Format) -> Iterator[Conversion]:
    """Every rounding to all places of a format, and toward zero and to nearest to fewer; exact zeros are +0."""
    for rounding in DETERMINISTIC:
        yield named_conversion(
            Conversion(f"{rounding.name}-{fmt.name.upper()}", fmt, fmt.fraction_bits, rounding)
        )
    for places in range(fmt.fraction_bits - 1, max(fmt.fraction_bits // 2 - 2, 1), -1):
        for rounding in (Rounding.RZ, Rounding.RNE):
            name = f"{rounding.name}-E{fmt.exponent_bits}M{places}"
            yield named_conversion(Conversion(name, fmt, places, rounding))


def ieee(rho: Conversion) -> Iterator[Conversion]:
    """The conversion with IEEE 754's overflow and zeros, where a directed rounding has these otherwise."""
    if rho.rounding in (Rounding.RZ, Rounding.RD, Rounding.RU):
        yield replace(rho, name=f"IEEE-{rho.name}", signed_zero=True, ieee=True)


def named_conversion(rho: Conversion) -> Conversion:
    """The conversion by the name that it has in tables, if it has one."""
    return next((each for each in CONVERSIONS.values() if replace(each, name=rho.name) == rho), rho)


def signed_zeros(rho: Conversion) -> tuple[Conversion, ...]:
    """Without the sign of an exact zero, and with it."""
    return rho, named_conversion(rho.with_signed_zero())


def zero_exponents(types: Types) -> Iterator[int | None]:
    """None, one below all, and each from the least exponent of a term, or of d, to that of 1."""
    yield from (None, LOWEST)
    least = min(types.a.min_exponent + types.b.min_exponent, types.c.min_exponent) - types.c.fraction_bits
    yield from range(min(least, types.d.min_exponent - types.d.fraction_bits), 1)


def varied(*names: str) -> Callable[[P, Types], Iterator[P]]:
    """Return the `details` of an algorithm: every exponent of a zero term (e_zero), or sign of an exact zero (of a
    conversion), the last of these parameters varying first."""

    def details(parameters: P, types: Types) -> Iterator[P]:
        values = [
            zero_exponents(types) if x == "e_zero" else signed_zeros(getattr(parameters, x)) for x in names
        ]
        yield from (replace(parameters, **dict(zip(names, each, strict=True))) for each in product(*values))

    return details


def orders(k: int, step: int) -> Iterator[tuple[int, ...]]:
    """Runs of products dealt to several turns, first to last or last to first, where that makes other steps than the
    order in which they are numbered."""
    seen = {_steps(tuple(range(k)), step)}
    for run in divisors(k):
        for turns in divisors(k // run):
            order = tuple(
                q * run + i for turn in range(turns) for q in range(turn, k // run, turns) for i in range(run)
            )
            steps = _steps(order, step)
            for each in (steps, steps[::-1]):
                if each not in seen:
                    seen.add(each)
                    yield tuple(x for members in each for x in sorted(members))


def _steps(order: tuple[int, ...], step: int) -> tuple[frozenset[int], ...]:
    return tuple(frozenset(order[i : i + step]) for i in range(0, len(order), step))


def valid(make: Callable[GivenP, P], *args: GivenP.args, **named: GivenP.kwargs) -> Iterator[P]:
    """The parameters, if they make sense."""
    try:
        yield make(*args, **named)
    except ValueError:
        return
