"""Emulations as data: products of fp32, or of fp8, as small programs over an instruction of another architecture.

    from mmaformal.architectures import emulations
    emulations.ootomo(hopper["HMMA.16816.F32"])
    emulations.named("promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=128, every=4)")
    ARCHITECTURES["emulation"]["bf16x3(ampere HMMA.16816.F32.BF16)"]

A scheme says in which words fp32 factors are cut, which products of words there are, and where their sums go; the
instruction is any with fp32 c and d.  What it computes is the algorithm `emulated`; of `ozaki2`, which is of integers,
`residues`.  `k` is the K of the program: as
many blocks of the instruction's own K; a greater K is a chain of programs, each one's d the next one's c.
There are as many as instructions and K, so the architecture "emulation" is found by its name, and not listed; what it
lists is a table of examples.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mmaformal.architectures.spelled import SpelledSpace
from mmaformal.encodings.emulated import MOST_SHIFT, Emulated, Part
from mmaformal.encodings.residues import PRODUCT_BITS, SUM_BITS, WHOLE_BITS, Residues
from mmaformal.formats import FORMATS, Format, bf16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32, IEEE_FP64, Conversion
from mmaformal.spec import DotAdd

#: The name of the architecture that has them all.
NAME = "emulation"

#: φ for words of a format, to nearest: what conversions of the devices do (tf32: `cvt.rna.tf32.f32` of PTX)
_WORDS = {"fp16": "IEEE-FP16", "bf16": "RNE-BF16±0", "tf32": "RNA-E8M10±0"}

#: rows and columns of `mma.m16n8k32` of int8
_INT8_M, _INT8_N = 16, 8

#: places of fp16 and tf32 significands: by so much Ootomo and Yokota scale what a word leaves
_SCALED = 11

_SOURCES = {
    "markidis": "Markidis et al. §V (refinement by two residuals)",
    "ootomo": "Ootomo and Yokota §4.4",
    "ozaki": "Ozaki et al. (2012); Mukunoki et al. (2020)",
    "ozaki2": "Ozaki, Uchino and Imamura (2025)",
    "promoted": "DeepSeek-V3 §3.3.2",
    "fp16_alt": "rocBLAS's tests of gemm_ex, whose reference truncates",
}


def markidis(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Markidis et al.: two words of each factor, all four products, the small ones first, all on the unit's c."""
    return _program(markidis, unit, k, 2, 0, Part(((1, 1), (1, 0), (0, 1), (0, 0))))


def ootomo(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Ootomo and Yokota: two words of each factor, the second scaled by 2^11, and three products.

    The product of the first words begins at zero in every block, and is added to the total outside of the unit, to
    nearest; both corrections are summed by the unit, over all blocks, and added last, times 2^-11.
    """
    blocks = _blocks(unit, k)
    main, corrections = Part(((0, 0),), 1), Part(((1, 0), (0, 1)), blocks, _SCALED)
    return _program(ootomo, unit, k, 2, _SCALED, main, corrections)


def fp16x2(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Words and products of `ootomo`, all of whose sums are the unit's: the first words' is on the unit's c."""
    blocks = _blocks(unit, k)
    return _program(
        fp16x2, unit, k, 2, _SCALED, Part(((0, 0),)), Part(((1, 0), (0, 1)), blocks, _SCALED), only="fp16"
    )


def bf16x3(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Two bf16 words of each factor, three products, the small ones first, all on the unit's c."""
    return _program(bf16x3, unit, k, 2, 0, Part(((1, 0), (0, 1), (0, 0))), only="bf16")


def bf16x6(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Three bf16 words of each factor, the six products that matter most, the small ones first, all on the unit's c."""
    products = (2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)
    return _program(bf16x6, unit, k, 3, 0, Part(products), only="bf16")


def bf16x9(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Three bf16 words of each factor, all nine products, the small ones first, all on the unit's c."""
    products = (2, 2), (2, 1), (1, 2), (2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)
    return _program(bf16x9, unit, k, 3, 0, Part(products), only="bf16")


def fp16_alt(unit: Instruction, *, k: int | None = None) -> Instruction:
    """rocBLAS's alternate products of fp16 on MI200 (`fp16_alt_impl`): each factor cut to bf16, on a unit of bf16.

    Factors are taken as fp32, which has every number of fp16.  What is below bf16's last place is cut off.
    """
    blocks, fmt = _blocks(unit, k), unit.a_format
    if not unit.b_format == fmt == bf16:
        raise ValueError(f"fp16_alt takes a unit of bf16, not of {unit.spec.types}")
    parameters = Emulated(unit.spec, (Part(((0, 0),)),), blocks, Conversion.named("RZ-BF16±0"), 1)
    spec = DotAdd(blocks * unit.k, fp32, fp32, fp32, fp32, parameters)
    return _instruction(fp16_alt, _spelled(fp16_alt, unit, k, {}), unit, spec)


def tf32x3(unit: Instruction, *, k: int | None = None) -> Instruction:
    """Two tf32 words of each factor, three products, the small ones first, all on the unit's c."""
    return _program(tf32x3, unit, k, 2, 0, Part(((1, 0), (0, 1), (0, 0))), only="tf32")


def ozaki(unit: Instruction, *, k: int | None = None, words: int | None = None) -> Instruction:
    """Ozaki's splitting: words are integers below an exponent that all a of the program have in common, and all b.

    A word has so few bits that the sum of k products of words is exact in fp32; each product of words has a sum of its
    own.  Those of words i + j ≥ `words` are left out.  Without `words` there are as many as the largest factors need
    for all their 24 bits.  Raises ValueError for a k whose sums would not be exact.
    """
    blocks, fmt = _blocks(unit, k), unit.a_format
    room = fp32.fraction_bits + 1 - (blocks * unit.k - 1).bit_length()
    bits = min(room // 2, fmt.fraction_bits + 1)
    if bits < 1:
        raise ValueError(f"sums of {blocks * unit.k} products of words are not exact in fp32")
    least = -(-(fp32.fraction_bits + 2) // (bits + 1))
    count = least if words is None else words
    most = MOST_SHIFT // (bits + 1) + 1
    if count > most:
        raise ValueError(f"at most {most} words of {bits} bits, not {count}")
    pairs = sorted(
        ((i, j) for i in range(count) for j in range(count - i)), key=lambda pair: (-sum(pair), pair)
    )
    parts = [Part((pair,), blocks, (bits + 1) * sum(pair)) for pair in pairs]
    return _program(ozaki, unit, k, count, bits + 1, *parts, common=bits, told={"words": words})


def ozaki2(
    fmt: str | Format, *, k: int = 64, moduli: int | None = None, bits: int | None = None
) -> Instruction:
    """Ozaki's second scheme: integers below an exponent in common, multiplied by their remainders in int8 and int32.

    fmt is fp32 or fp64, of all four matrices.  The moduli are the largest coprime numbers up to 256, as many as are
    needed for sums of k products of words of `bits` bits; words have all of a factor's bits, or as many as a sum has
    room for.  With fewer `moduli` large sums are wrong.  Raises ValueError for what there is no room for.
    """
    of = Format.named(fmt)
    if of not in (fp32, fp64):
        raise ValueError(f"ozaki2 takes fp32 or fp64, not {of}")
    most = ((1 << SUM_BITS) - 1) >> PRODUCT_BITS
    if not 1 <= k <= most:
        raise ValueError(f"ozaki2 takes k from 1 to {most}, whose sums int32 holds, not {k}")
    room = (WHOLE_BITS - 2 - (k - 1).bit_length()) // 2
    kept = min(room, of.fraction_bits + 1) if bits is None else bits
    told = {"k": k, "moduli": moduli, "bits": bits}
    all_of = _coprime()
    rho = IEEE_FP32 if of == fp32 else IEEE_FP64
    if moduli is not None and not 1 <= moduli <= len(all_of):
        raise ValueError(f"ozaki2 takes 1 to {len(all_of)} moduli, not {moduli}")
    for count in range(1, len(all_of) + 1) if moduli is None else (moduli,):
        parameters = Residues(k, all_of[:count], kept, rho)
        if parameters.suffices or moduli is not None:
            name = f"ozaki2({', '.join([of.name, *_arguments(told)])})"
            spec = DotAdd(k, of, of, of, of, parameters)
            sources = dict.fromkeys(spec.parameters, _SOURCES["ozaki2"])
            return Instruction(name, NAME, _INT8_M, _INT8_N, spec, sources=sources)
    raise ValueError(f"sums of {k} products of words of {kept} bits need more than {len(all_of)} moduli")


def _coprime() -> tuple[int, ...]:
    """The largest numbers up to 256 that have no divisor in common, each the largest that is left."""
    found: list[int] = []
    for each in range(256, 1, -1):
        if math.gcd(each, math.prod(found)) == 1 and math.prod(found) * each < 1 << WHOLE_BITS:
            found.append(each)
    return tuple(found)


def promoted(unit: Instruction, *, k: int | None = None, every: int = 1) -> Instruction:
    """One word, the factor itself: after `every` blocks the unit's sum is added to the total, outside of the unit.

    So DeepSeek-V3 has hopper's fp8 (`every` = 4 for each 128 products); as `matmul`'s `promote_every`.
    """
    spec, blocks = unit.spec, _blocks(unit, k)
    parameters = Emulated(spec, (Part(((0, 0),), every),), blocks)
    name = _spelled(promoted, unit, k, {"every": None if every == 1 else every})
    dot_add = DotAdd(blocks * spec.k, spec.a_format, spec.b_format, spec.c_format, spec.d_format, parameters)
    return _instruction(promoted, name, unit, dot_add)


def converted(unit: Instruction, *, a: str | Format, b: str | Format) -> Instruction:
    """The unit itself, of factors of narrower formats, each converted exactly: fp16 has every number of e4m3 and e5m2.

    So a unit of fp16 is compared with one of fp8, on the inputs that both have.  Raises ValueError for formats with
    numbers that the unit's do not have.
    """
    spec = unit.spec
    of_a, of_b = (FORMATS[each] if isinstance(each, str) else each for each in (a, b))
    if unit.issues > 1:
        raise ValueError(f"{unit.label} is a chain: convert the instruction, and chain what comes of it")
    name = _spelled(converted, unit, None, {"a": of_a.name, "b": of_b.name})
    parameters = Emulated(spec, (Part(((0, 0),)),))
    dot_add = DotAdd(spec.k, of_a, of_b, spec.c_format, spec.d_format, parameters)
    return _instruction(converted, name, unit, dot_add)


def in_one_format(x: Instruction, y: Instruction) -> tuple[Instruction, Instruction]:
    """Both instructions, the one of wider factors `converted` to the other's where these embed; else as they are."""
    formats = [(each.a_format, each.b_format) for each in (x, y)]
    if formats[0] == formats[1] or any(each.spec.scale_format is not None for each in (x, y)):
        return x, y
    for narrow, wide, swapped in ((x, y, False), (y, x, True)):
        try:
            unit = replace(wide, name=wide.name.removesuffix(f"[K={wide.k}]"), issues=1, spec=_of_one(wide))
            found = converted(unit, a=narrow.a_format, b=narrow.b_format).chained(wide.k)
        except ValueError:
            continue
        return (found, narrow) if swapped else (narrow, found)
    return x, y


def _of_one(chain: Instruction) -> DotAdd:
    """The specification of one instruction of a chain."""
    return chain.spec.replace(k=chain.k // chain.issues)


#: The schemes, by name.
SCHEMES: dict[str, Callable[..., Instruction]] = {
    each.__name__: each
    for each in (
        markidis,
        ootomo,
        fp16x2,
        bf16x3,
        bf16x6,
        bf16x9,
        fp16_alt,
        tf32x3,
        ozaki,
        ozaki2,
        promoted,
        converted,
    )
}

#: Names that others have for schemes: presets of XLA's `DotAlgorithm` (openxla/xla, xla_data.proto: types of the
#: factors, of the sum, and how many products), with `ALG_DOT_` before them or not, cuBLAS 13's type of computation, and
#: rocBLAS's flag.
#: They say words and products; in which order these are added is the scheme's.
ALSO = {
    "BF16_BF16_F32_X3": "bf16x3",
    "BF16_BF16_F32_X6": "bf16x6",
    "BF16_BF16_F32_X9": "bf16x9",
    "TF32_TF32_F32_X3": "tf32x3",
    "CUBLAS_COMPUTE_32F_EMULATED_16BFX9": "bf16x9",
    "ROCBLAS_GEMM_FLAGS_FP16_ALT_IMPL": "fp16_alt",
    "FP16_ALT_IMPL": "fp16_alt",
}


# ---- programs --------------------------------------------------------------------------------------------------------


def _blocks(unit: Instruction, k: int | None) -> int:
    """How many instructions take k products."""
    whole = unit.k if k is None else k
    if whole < 1 or whole % unit.k:
        raise ValueError(f"{unit.label} has K = {unit.k}; {whole} is not a multiple of it")
    return whole // unit.k


def _program(
    scheme: Callable[..., Instruction],
    unit: Instruction,
    k: int | None,
    words: int,
    shift: int,
    *parts: Part,
    only: str = "",
    common: int = 0,
    told: Mapping[str, int | None] = MappingProxyType({}),
) -> Instruction:
    """fp32 factors in words of the unit's format.  Raises ValueError for a unit of other ones."""
    fmt = unit.a_format
    if unit.b_format != fmt or fmt.name not in _WORDS or (only and fmt.name != only):
        raise ValueError(
            f"{scheme.__name__} takes a unit of {only or ', '.join(_WORDS)}, not of {unit.spec.types}"
        )
    blocks = _blocks(unit, k)
    parameters = Emulated(unit.spec, parts, blocks, Conversion.named(_WORDS[fmt.name]), words, shift, common)
    spec = DotAdd(blocks * unit.k, fp32, fp32, fp32, fp32, parameters)
    return _instruction(scheme, _spelled(scheme, unit, k, told), unit, spec)


def _spelled(
    scheme: Callable[..., Instruction], unit: Instruction, k: int | None, more: Mapping[str, int | str | None]
) -> str:
    given = {"k": None if k == unit.k else k, **more}
    return f"{scheme.__name__}({', '.join([unit.label, *_arguments(given)])})"


def _arguments(given: Mapping[str, int | str | None]) -> list[str]:
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def _instruction(
    scheme: Callable[..., Instruction], name: str, unit: Instruction, spec: DotAdd
) -> Instruction:
    source = _SOURCES.get(scheme.__name__, "chosen")
    sources = dict.fromkeys(spec.parameters, source) | {"unit": unit.label}
    return Instruction(name, NAME, unit.m, unit.n, spec, sources=sources)


# ---- spelled out -----------------------------------------------------------------------------------------------------

#: a scheme, an architecture and an instruction (which may be spelled out with arguments of its own), or a format,
#: arguments
_SPELLED = re.compile(r"\s*(\w+)\s*\(\s*([^\s,()]+)(?:\s+([^,()]+(?:\([^()]*\))?))?\s*(?:,([^()]*))?\)\s*")


def named(text: str) -> Instruction:
    """The emulation that is spelled out: `ootomo(hopper HMMA.16816.F32, k=64)`; by a name of `ALSO` too.

    Raises ValueError for what is none, with what there is; KeyError for a unit that there is not.
    """
    from mmaformal.architectures import ARCHITECTURES

    found = _SPELLED.fullmatch(text)
    scheme = (
        SCHEMES.get(ALSO.get(found[1].upper().removeprefix("ALG_DOT_"), found[1].lower())) if found else None
    )
    if found is None or scheme is None or (found[3] is None) != (scheme is ozaki2):
        raise ValueError(f"no emulation {text!r}: it is one of {', '.join(map(_spelling, SCHEMES.values()))}")
    given: dict[str, int | str] = {}
    for part in filter(None, (each.strip() for each in (found[4] or "").split(","))):
        name, _, value = (each.strip() for each in part.partition("="))
        if (
            name not in inspect.signature(scheme).parameters
            or name in ("unit", "fmt", *given)
            or not (value in FORMATS if scheme is converted else value.isdecimal())
        ):
            raise ValueError(f"{text}: {part!r} is no argument of {_spelling(scheme)}")
        given[name] = value if scheme is converted else int(value)
    if scheme is ozaki2:
        return scheme(found[2], **given)
    return scheme(ARCHITECTURES[found[2]][found[3].strip()], **given)


def _spelling(scheme: Callable[..., Instruction]) -> str:
    """How an emulation is spelled, with the arguments that it takes."""
    of, *others = inspect.signature(scheme).parameters
    first = "ARCH INSTRUCTION" if of == "unit" else "FORMAT"
    return f"{scheme.__name__}({', '.join([first, *(f'[{name}]' for name in others)])})"


# ---- as an architecture ----------------------------------------------------------------------------------------------


_EXAMPLES = (
    "markidis(volta HMMA.884.F32.F32)",
    "ootomo(volta HMMA.884.F32.F32)",
    "markidis(ampere HMMA.16816.F32)",
    "ootomo(ampere HMMA.16816.F32)",
    "markidis(hopper HMMA.16816.F32)",
    "ootomo(hopper HMMA.16816.F32)",
    "ootomo(hopper HMMA.16816.F32, k=64)",
    "ootomo(ampere HMMA.1688.F32.TF32)",
    "fp16x2(hopper HMMA.16816.F32)",
    "bf16x3(ampere HMMA.16816.F32.BF16)",
    "bf16x6(ampere HMMA.16816.F32.BF16)",
    "bf16x9(ampere HMMA.16816.F32.BF16)",
    "fp16_alt(ampere HMMA.16816.F32.BF16)",
    "tf32x3(ampere HMMA.1688.F32.TF32)",
    "ozaki(hopper HMMA.16816.F32, k=64)",
    "ozaki2(fp32, k=64)",
    "ozaki2(fp64, k=64)",
    "promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=128, every=4)",
    "converted(hopper HMMA.16816.F32, a=e4m3, b=e4m3)",
)


def emulation() -> SpelledSpace:
    listed = map(named, _EXAMPLES)
    return SpelledSpace(NAME, "programs over instructions", listed, SCHEMES, _spelling, named)
