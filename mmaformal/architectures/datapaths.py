"""Datapaths as data: the design space of TensorGauge (`papers.py`) §IV-B, each point an instruction.

    from mmaformal.architectures import datapaths
    datapaths.fda(k=16, frac_bits=20, a="bf16")
    datapaths.named("sda(k=32, frac_bits=20, a=e4m3, cut=RO)")
    ARCHITECTURES["datapath"]["fda(k=16, frac_bits=25, rho=RZ-FP32, e_zero=-133)"]      # hopper HMMA.16816.F32

A point is one of the paper's organisations, its group size `k`, the fractional bits that an alignment keeps, how it
cuts them, the formats, and the conversion of the output.  What it computes is an algorithm of the model
(`encodings/`): MUL+ADD is muladd, FMA sfma or wfma, FDA fda, SDA lowered (fda from zero, c added last), GFDA
gfda, or gdfs of e2m1 with block scales.
There are as many points as there are arguments, so the architecture "datapath" is found by its name, and not listed;
what it lists is a table of examples.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from mmaformal.architectures.spelled import SpelledSpace
from mmaformal.display import clipped
from mmaformal.encodings.adder_tree import AdderTree
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma_flags import FLAGS, FmaFlags
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.integer_dot import IntegerDot
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.encodings.wfma import Wfma
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.limits import holds_narrower
from mmaformal.rounding import Conversion, NanRule, Rounding, Tininess
from mmaformal.spec import DotAdd, Parameters

#: The name of the architecture that has them all.
NAME = "datapath"

#: An exponent of exact zeros; `None`: one below all others, so that zeros do not take part in choosing the largest
#: exponent; "fields": that of their fields.
ZeroExponentRule = int | Literal["fields"] | None

_SOURCES = {
    "F": "TensorGauge §IV-B (FracBits)",
    "L": "TensorGauge §IV-B (K)",
    "G": "TensorGauge §IV-B (GFDA)",
    "cut": "TensorGauge Fig. 2 (truncation, rounding)",
}


def mul_add(
    *,
    k: int = 1,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    product: str | None = None,
    rho: str = "IEEE-FP32",
) -> Instruction:
    """MUL+ADD: k products one after the other, each rounded with `product` (default: ρ), then added and rounded with ρ.

    `product="RNE-E8M10"` keeps 10 fractional bits of each product.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    parameters = Muladd(Conversion.named(product or rho), conversion)
    return _point(mul_add, locals(), DotAdd(k, x, y, conversion.format, conversion.format, parameters))


def pair_add(
    *,
    k: int = 2,
    a: Format | str = "bf16",
    b: Format | str | None = None,
    pair: str | None = None,
    rho: str = "IEEE-FP32",
) -> Instruction:
    """PAIR+ADD: the exact sum of two products at a time, rounded with `pair` (default: ρ), then added and rounded with
    ρ, as POWER10's xvbf16ger2pp and Arm SME's FMOPA do."""
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    parameters = Rnd2(Conversion.named(pair or rho), conversion)
    return _point(pair_add, locals(), DotAdd(k, x, y, conversion.format, conversion.format, parameters))


def fma(
    *,
    k: int = 1,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "IEEE-FP32",
    nan: str = "ANY",
    ones: int = 0,
    flush_inputs: int = 0,
    tiny: str = "kept",
) -> Instruction:
    """FMA: k fused multiply-adds one after the other, each exact until it is rounded with ρ.

    a, b, c: their formats (default of c: ρ's).  rho: IEEE-FP32 is to nearest even, IEEE-RZ-BF16 another rounding of
    IEEE 754's, RZ, RD, RU or RNA.  nan: which NaN, ANY, DEFAULT, FIRST (of a, b, c) or FIRST_ACB; ones: 1 where the
    default NaN is all ones.  flush_inputs: 1 where subnormal operands count as zero.  tiny: BEFORE or AFTER, when a
    result counts as tiny that is flushed to zero.  (sfma, or wfma of narrower a and b onto fp32, where these say it;
    else fma.)
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    d = conversion.format
    z = _format(c) or d
    when = None if tiny == "kept" else Tininess.named(tiny, "tiny")
    own = Fma(conversion, NanRule.named(nan, "nan"), bool(ones), bool(flush_inputs), when)
    parameters: Parameters = own
    if own == Fma(conversion) and z == d:
        if x == y == d and d in (fp16, fp32, fp64):
            parameters = Sfma(conversion)
        elif d == fp32 and all(each != fp32 and holds_narrower(fp32, each) for each in (x, y)):
            parameters = Wfma(conversion)
    return _point(fma, locals(), DotAdd(k, x, y, z, d, parameters))


def flags(
    *,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "IEEE-FP32",
    tiny: str = "AFTER",
    hides: int = 0,
    flush_inputs: int = 0,
) -> Instruction:
    """FLAGS: the exceptions of one fma, in RISC-V's order: 16 invalid, 4 overflow, 2 underflow, 1 inexact (fma_flags).

    tiny: AFTER or BEFORE, when a result counts as tiny.  hides: 1 where a quiet NaN c hides 0·∞.  The others as of fma.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    own = FmaFlags(conversion, Tininess.named(tiny, "tiny"), bool(hides), bool(flush_inputs))
    return _point(flags, locals(), DotAdd(1, x, y, _format(c) or conversion.format, FLAGS, own))


def flags_of(instruction: Instruction) -> Instruction:
    """The exceptions of one fma, which are tiny after rounding.  Raises ValueError for another instruction."""
    spec, p = instruction.spec, instruction.spec.parameters
    if not p.has_flags or spec.k != 1 or spec.is_signed:
        raise ValueError(f"{instruction.label} is no single fma, whose exceptions are known")
    own = dict(zip(p.keys(), map(p.__getitem__, p.keys()), strict=True))
    if own.get("tiny") is not None:
        raise ValueError(f"{instruction.label} flushes results: what it raises then is its own")
    a, b, c, flushed = spec.a_format, spec.b_format, spec.c_format, int(bool(own.get("flush_inputs")))
    return flags(a=a, b=b, c=c, rho=p.last_rounding.name, flush_inputs=flushed)


def tree(
    *,
    k: int,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    order: str = "",
    product: str | None = None,
    sums: str | None = None,
    rho: str = "IEEE-FP32",
    nan: str = "ANY",
) -> Instruction:
    """TREE: rounded products added by a tree of IEEE additions, each stage rounded its own way (adder_tree).

    order: what is added to what, as `((0+1)+(2+3))+c`, from the left without parentheses (default: products in pairs,
    pairs in pairs, c last; of more than its products a chain).  product, sums: their roundings (default: ρ); several of
    sums, by height, are `IEEE-E8M13.IEEE-FP32`.  ρ rounds the last sum again where the last of `sums` is another.
    c: its format (default: ρ's).  nan: ANY or DEFAULT.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    given = order or f"{_in_pairs(list(range(k)))}+c"
    of_sums, phi = sums or conversion.name, Conversion.named(product or rho)
    parameters = AdderTree(phi, of_sums, conversion, given, NanRule.named(nan, "nan"))  # type: ignore[arg-type]
    return _point(
        tree, locals(), DotAdd(k, x, y, _format(c) or conversion.format, conversion.format, parameters)
    )


def _in_pairs(places: list[int]) -> str:
    """How the sum of places by halves is spelled."""
    if len(places) < 2:
        return str(places[0]) if places else ""
    half = (len(places) + 1) // 2
    return f"({_in_pairs(places[:half])}+{_in_pairs(places[half:])})"


def exact(
    *,
    k: int,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "IEEE-FP32",
    nan: str = "ANY",
    flush_inputs: int = 0,
    chain: int = 1,
) -> Instruction:
    """EXACT: the exact sum of k products and c, rounded once with ρ, a zero with IEEE 754's sign (efda).

    c: its format (default: ρ's).  nan: ANY or DEFAULT.  flush_inputs: 1 where subnormal operands count as zero.  chain:
    how many such steps one instruction is.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    own = Efda(k, conversion, True, NanRule.named(nan, "nan"), bool(flush_inputs))
    return _point(
        exact, locals(), DotAdd(k * chain, x, y, _format(c) or conversion.format, conversion.format, own)
    )


def fda(
    *,
    k: int,
    frac_bits: int,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "RNE-FP32",
    cut: str = "RZ",
    e_zero: ZeroExponentRule = None,
    scale: Format | str | None = None,
    block: int = 0,
    chain: int = 1,
) -> Instruction:
    """FDA, fused dot-add: k products and c are aligned to the largest exponent and cut to `frac_bits` fractional bits,
    added exactly, and the sum is rounded with ρ.

    cut: RZ, toward zero, or RO, to odd: the last bit kept is sticky.  c: its format (default: ρ's).  scale, block: the
    format of block scales (ue8m0), one pair for each `block` products.  chain: how many such steps one instruction is.
    """
    x, y = _factors(a, b)
    conversion, z = Conversion.named(rho), _format(c)
    z, s = z or conversion.format, _format(scale)
    parameters = Fda(frac_bits, k, conversion, _exponent(e_zero, (x, y), z, s), Rounding.named(cut, "cut"))
    spec = DotAdd(k * chain, x, y, z, conversion.format, parameters, s, block)
    return _point(fda, locals(), spec)


def joined(
    *,
    k: int,
    frac_bits: int,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "RNE-FP32",
    e_zero: ZeroExponentRule = None,
    chain: int = 1,
) -> Instruction:
    """JOINED: k products and c aligned, cut to `frac_bits` fractional bits and added as by fda; then a bit below the
    magnitude of the sum is set if anything was cut off of any of them, and the sum is rounded with ρ (joined_fda).

    c, e_zero, chain: as of fda.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    z = _format(c) or conversion.format
    own = JoinedFda(frac_bits, k, conversion, _exponent(e_zero, (x, y), z, None))
    return _point(joined, locals(), DotAdd(k * chain, x, y, z, conversion.format, own))


def two_largest(
    *,
    frac_bits: int,
    last_bits: int | None = None,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    c: Format | str | None = None,
    rho: str = "IEEE-FP32",
    between: int = 1,
    nan: str = "ANY",
    chain: int = 1,
) -> Instruction:
    """TWO LARGEST: of two products and c the two largest are added first, with `frac_bits` fractional bits, the last
    one sticky; then the smallest, with `last_bits` (default: two more); and that is rounded with ρ (sorted_fda).

    between: 0 where the first sum is not normalised before the smallest term is added.  c: its format (default: ρ's).
    nan: ANY or DEFAULT.  chain: as of exact.
    """
    x, y = _factors(a, b)
    conversion = Conversion.named(rho)
    last = frac_bits + 2 if last_bits is None else last_bits
    own = SortedFda(frac_bits, last, conversion, bool(between), NanRule.named(nan, "nan"))
    spec = DotAdd(2 * chain, x, y, _format(c) or conversion.format, conversion.format, own)
    return _point(two_largest, locals(), spec)


def sda(
    *,
    k: int,
    frac_bits: int,
    a: Format | str = "fp16",
    b: Format | str | None = None,
    dot: str = "RNE-FP32",
    rho: str = "IEEE-FP32",
    cut: str = "RZ",
    e_zero: ZeroExponentRule = None,
    step: int | None = None,
    operands: Format | str | None = None,
    order: str = "",
) -> Instruction:
    """SDA, separated dot-add: the dot product of k products as fda has it, from zero, rounded with `dot`; then c is
    added to it, by an IEEE addition rounded with ρ.

    step: products of one sum, if these are fewer than k: the dot product is a chain of such sums then.  operands: the
    format that a and b are converted to first; order: in which the products are taken, as `0.1.4.5.2.3.6.7`.  (So is
    NVIDIA's `mma` of fp8 on hopper.)
    """
    x, y = _factors(a, b)
    inner, last, to = Conversion.named(dot), Conversion.named(rho), _format(operands)
    taken = tuple(int(place) for place in order.split(".")) if order else tuple(range(k))
    zero = _exponent(e_zero, (to or x, to or y), last.format, None)
    parameters = Lowered(frac_bits, step or k, inner, zero, to, taken, last, Rounding.named(cut, "cut"))
    return _point(sda, locals(), DotAdd(k, x, y, last.format, last.format, parameters))


def gfda(
    *,
    k: int,
    group: int,
    frac_bits: int,
    a: Format | str = "e2m1",
    b: Format | str | None = None,
    rho: str = "RNE-FP32",
    cut: str = "RZ",
    e_zero: ZeroExponentRule = None,
    group_bits: int | None = None,
    scale: Format | str | None = None,
    block: int = 32,
) -> Instruction:
    """GFDA, grouped fused dot-add: each `group` products are added, aligned to the largest exponent of their group with
    `group_bits` fractional bits (default: as many as lose nothing, or 40); these sums and c
    are then aligned and added as fda does with products.

    With a scale format, of e2m1, groups are added exactly, in fixed point, and scaled, one pair of scales for each
    `block` products (gdfs).
    """
    x, y = _factors(a, b)
    conversion, s = Conversion.named(rho), _format(scale)
    if s is None:
        lossless = sum(fmt.max_exponent - fmt.min_exponent + fmt.fraction_bits for fmt in (x, y))
        W = group_bits or max(min(lossless, 40), frac_bits)
        own = Gfda(
            *(frac_bits, group, k, W, conversion, _exponent(e_zero, (x, y), conversion.format, None)),
            cut=Rounding.named(cut, "cut"),
        )
        return _point(gfda, locals(), DotAdd(k, x, y, conversion.format, conversion.format, own))
    if cut != "RZ" or group_bits is not None:
        raise ValueError("gfda with block scales adds groups exactly, and cuts RZ: no cut, no group_bits")
    zero = _exponent(e_zero, (), conversion.format, s)
    parameters = Gdfs(frac_bits, group, k, conversion, zero)
    spec = DotAdd(k, x, y, conversion.format, conversion.format, parameters, s, block)
    return _point(gfda, locals(), spec)


def integer(
    *,
    k: int,
    a: Format | str = "int8",
    b: Format | str | None = None,
    c: Format | str = "int32",
    clamp: int = 0,
    group: int = 0,
    inner: int = 0,
    chain: int = 1,
) -> Instruction:
    """INTEGER: the sum of k products of integers (int4, uint8, …) and c, exact, then wrapped around, or clamped to
    c's format with clamp=1 (integer_dot).

    group, inner: each `group` products are added first, and clamped to `inner` bits, as x86's vpmaddubsw does (2, 16).
    chain: as of exact.
    """
    x, y = _factors(a, b)
    z = Format.named(c, "c")
    own = IntegerDot(k, bool(clamp), group, inner)
    return _point(integer, locals(), DotAdd(k * chain, x, y, z, z, own))


#: The organisations, by name.
KINDS: dict[str, Callable[..., Instruction]] = {
    each.__name__: each
    for each in (mul_add, pair_add, fma, flags, exact, tree, fda, joined, two_largest, sda, gfda, integer)
}


# ---- arguments -------------------------------------------------------------------------------------------------------


def _format(value: Format | str | None) -> Format | None:
    return None if value is None else Format.named(value, "a format")


def _factors(a: Format | str, b: Format | str | None) -> tuple[Format, Format]:
    """The formats of a and b: that of b is a's, unless it is given."""
    x = Format.named(a, "a")
    return x, x if b is None else Format.named(b, "b")


def _exponent(
    e_zero: ZeroExponentRule, factors: Iterable[Format], c: Format, scale: Format | None
) -> int | None:
    """Return zeros' exponent as the parameters have it: None stands for that of the fields."""
    if e_zero is None:
        products = sum(fmt.min_exponent for fmt in factors) + (2 * scale.min_exponent if scale else 0)
        return min(products, c.min_exponent) - 1
    return None if e_zero == "fields" else e_zero


def _point(kind: Callable[..., Instruction], given: dict[str, object], spec: DotAdd) -> Instruction:
    """The instruction, named by k and the arguments that are not defaults."""
    arguments = inspect.signature(kind).parameters
    told = ",".join(f"{n}={given[n]}" for n, p in arguments.items() if n == "k" or given[n] != p.default)
    sources = {name: _SOURCES.get(name, "chosen") for name in spec.parameters}
    return Instruction(f"{kind.__name__}({told})", NAME, 1, 1, spec, sources=sources)


# ---- spelled out -----------------------------------------------------------------------------------------------------

_SPELLED = re.compile(r"\s*([a-z_]+)\s*\((.*)\)\s*")


def named(text: str) -> Instruction:
    """The datapath that is spelled out: `fda(k=16, frac_bits=20, a=bf16)`, arguments as those of the functions here.

    Raises ValueError for what is none, with what there is; TypeError for an argument of another kind.
    """
    found = _SPELLED.fullmatch(text)
    kind = KINDS.get(found[1]) if found else None
    if found is None or kind is None:
        how = "`mmaformal show datapath` says how each is spelled"
        raise ValueError(f"no datapath {clipped(text, 40)!r}: {', '.join(KINDS)}; {how}")
    arguments = inspect.signature(kind).parameters
    given: dict[str, int | str] = {}
    for part in filter(None, (each.strip() for each in found[2].split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        name = "rho" if name == "ρ" else name
        if not equals or name not in arguments:
            raise ValueError(f"{text}: {part!r} is no argument of {_spelling(kind)}")
        if name in given:
            raise ValueError(f"{text}: {name} is given twice")
        given[name] = int(value) if re.fullmatch(r"-?\d+", value) else value
    if missing := [n for n, p in arguments.items() if p.default is p.empty and n not in given]:
        raise ValueError(f"{text}: {', '.join(missing)} missing; {_spelling(kind)}")
    return kind(**given)


def _spelling(kind: Callable[..., Instruction]) -> str:
    """How a datapath is spelled, with the arguments that it takes."""
    arguments = inspect.signature(kind).parameters.values()
    shown = ", ".join(p.name if p.default is p.empty else f"[{p.name}]" for p in arguments)
    return f"{kind.__name__}({shown})"


def point_of(instruction: Instruction) -> Instruction:
    """The datapath that an instruction of any architecture is.

    Raises ValueError if its algorithm is no organisation of the paper's.
    """
    return named(spelled(instruction.spec))


def spelled(spec: DotAdd) -> str:
    """The spelling of a datapath that computes this.  Raises ValueError."""
    if spec.product_order:
        raise ValueError(f"{spec!r} takes products in an order of its own")
    found = spec.parameters.datapath(spec)
    if found is None:
        raise ValueError(f"{spec.parameters.algorithm} is no datapath of {', '.join(KINDS)}")
    return _told(*found)


def _told(kind: str, given: dict[str, object]) -> str:
    return f"{kind}({','.join(f'{name}={value}' for name, value in given.items())})"


# ---- as an architecture ----------------------------------------------------------------------------------------------


def _examples() -> Iterator[Instruction]:
    yield mul_add(k=16)
    yield fma(k=16)
    yield flags()
    yield pair_add(k=16)
    yield exact(k=4)
    yield tree(k=4)
    yield joined(k=4, frac_bits=24)
    yield integer(k=4)
    yield two_largest(frac_bits=51)
    for make in (fda, sda):
        for k in (4, 16, 64):
            yield make(k=k, frac_bits=24)
    yield fda(k=16, frac_bits=24, cut="RO")
    yield gfda(k=64, group=16, frac_bits=24)
    yield gfda(k=64, group=16, frac_bits=24, scale="ue4m3", block=16)


def datapath() -> SpelledSpace:
    return SpelledSpace(NAME, "the design space of TensorGauge", _examples(), KINDS, _spelling, named)
