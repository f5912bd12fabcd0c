"""A C program that puts one dot product-add to the processor at hand and says if its unit does what its model says.

The program is self-contained: the instruction by its intrinsic (or as assembly, where a compiler may choose among forms
that treat NaNs differently), the case as bit patterns, and what each model predicts.  It asks the processor first
whether it has the unit, and may be compiled where it has not.

Sources: Intel's Intrinsics Guide and Software Developer's Manual (AMX: tile configuration, and pairs of B's rows side
by side, "VNNI"); Linux, Documentation/arch/x86/xstate.rst, for the permission to use tiles; Arm C Language Extensions;
Arm's manual (SME, as assembly: streaming mode begins and ends in it); GCC, PowerPC Matrix-Multiply Assist Built-in
Functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from numpy.typing import ArrayLike, NDArray

from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction, as_codes


class CUnavailableError(ValueError):
    """No C program can be written for this instruction; the message says why."""


@dataclass(frozen=True, repr=False)
class Intrinsic(ShortRepr):
    """An instruction of a processor, as C."""

    target: str  #: macro that a compiler for such processors defines
    has: str  #: C expression: whether this processor has it
    flag: str  #: what /proc/cpuinfo calls it
    compiled_for: str  #: the compiler's `target` attribute of the function that uses it
    run: str  #: body of a function (a, b, c) → d of STEP products; a template in K


_TILE = """\
    static struct { uint8_t palette, start_row, reserved[14]; uint16_t row_bytes[16]; uint8_t rows[16]; }
        __attribute__((aligned(64))) tiles = {.palette = 1};
    uint16_t A[16][$K] = {{0}}, B[$K / 2][16][2] = {{{0}}};  // two rows of B side by side: VNNI
    uint32_t D[16][16] = {{c}};
    for (int k = 0; k < $K; ++k) A[0][k] = a[k], B[k / 2][0][k % 2] = b[k];
    tiles.rows[0] = 16, tiles.row_bytes[0] = 64;      // C and D
    tiles.rows[1] = 16, tiles.row_bytes[1] = 2 * $K;  // A
    tiles.rows[2] = $K / 2, tiles.row_bytes[2] = 64;  // B
    _tile_loadconfig(&tiles);
    _tile_loadd(0, D, 64);
    _tile_loadd(1, A, 2 * $K);
    _tile_loadd(2, B, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, D, 64);
    _tile_release();
    return D[0][0];"""

_PAIR = """\
    uint16_t A[32] = {a[0], a[1]}, B[32] = {b[0], b[1]};
    uint32_t D[16] = {c};
    __m512 d = _mm512_dpbf16_ps(_mm512_loadu_ps(D), (__m512bh)_mm512_loadu_si512(A), (__m512bh)_mm512_loadu_si512(B));
    _mm512_storeu_ps(D, d);
    return D[0];"""

#: The call as assembly: of the forms 132, 213 and 231 a compiler takes any.
_HALF = """\
    uint16_t A[32] = {a[0]}, B[32] = {b[0]}, D[32] = {c};
    __m512i x = _mm512_loadu_si512(A), y = _mm512_loadu_si512(B), d = _mm512_loadu_si512(D);
    __asm__("vfmadd231ph %2, %1, %0" : "+v"(d) : "v"(x), "v"(y));
    _mm512_storeu_si512(D, d);
    return D[0];"""

_DOT = """\
    uint16_t A[4] = {a[0], a[1]}, B[4] = {b[0], b[1]};
    uint32_t D[2] = {c};
    float32x2_t d = vreinterpret_f32_u32(vld1_u32(D));
    d = vbfdot_f32(d, vreinterpret_bf16_u16(vld1_u16(A)), vreinterpret_bf16_u16(vld1_u16(B)));
    vst1_u32(D, vreinterpret_u32_f32(d));
    return D[0];"""

_MATRIX = """\
    uint16_t A[8] = {a[0], a[1], a[2], a[3]}, B[8] = {b[0], b[1], b[2], b[3]};  // rows of A; columns of B
    uint32_t D[4] = {c};
    float32x4_t d = vreinterpretq_f32_u32(vld1q_u32(D));
    d = vbfmmlaq_f32(d, vreinterpretq_bf16_u16(vld1q_u16(A)), vreinterpretq_bf16_u16(vld1q_u16(B)));
    vst1q_u32(D, vreinterpretq_u32_f32(d));
    return D[0];"""

#: All elements of ZA's tile that the first row has are alike; SMSTART sets ZA to zero, and SMSTOP forgets it.
_OUTER = """\
    $T x = $x, y = $y, d;
    __asm__ volatile(
        ".arch armv9-a+sme+sme-f64\\n\\tsmstart\\n\\tptrue p0.b\\n\\tmov w12, #0\\n\\t"
        "mov z0.$s, %$r[x]\\n\\tmov z1.$s, %$r[y]\\n\\tmov z2.$s, %$r[c]\\n\\tmov za0h.$s[w12, 0], p0/m, z2.$s\\n\\t"
        "$opcode za0.$s, p0/m, p0/m, z0.$h, z1.$h\\n\\t"
        "mov z3.$s, p0/m, za0h.$s[w12, 0]\\n\\tfmov %$r[d], $f\\n\\tsmstop"
        : [d] "=&r"(d) : [x] "r"(x), [y] "r"(y), [c] "r"(c)
        : "x12", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
          "v28", "v29", "v30", "v31");
    return d;"""

#: All elements of the accumulator are alike, wherever they are.
_ACCUMULATOR = """\
    $T D[64 / sizeof($T)] __attribute__((aligned(16)));
    Bytes x = (Bytes)vec_splats(($T)$x), y = (Bytes)vec_splats(($T)$y), z = (Bytes)vec_splats(c);
    __vector_quad d;
    __builtin_mma_assemble_acc(&d, z, z, z, z);
    $call;
    __builtin_mma_disassemble_acc(D, &d);
    return D[0];"""

_X86, _ARM, _POWER = "__x86_64__", "__aarch64__", "__powerpc64__"


def _filled(body: str, **words: str) -> str:
    """A body with the words of one instruction; $K stays."""
    return Template(body).safe_substitute(words)


def _factors(k: int) -> dict[str, str]:
    """The words of a and b: two halves each, the low one first, or one code."""
    if k == 1:
        return {"x": "a[0]", "y": "b[0]"}
    return {name: f"({code}[0] | (uint32_t){code}[1] << 16)" for name, code in (("x", "a"), ("y", "b"))}


def _sme() -> Iterator[tuple[tuple[str, str], Intrinsic]]:
    for name, opcode, k, bits in (
        ("FMOP{}.F32.F16", "fmop{}", 2, 32),
        ("BFMOP{}", "bfmop{}", 2, 32),
        ("FMOP{}.F32", "fmop{}", 1, 32),
        ("FMOP{}.F64", "fmop{}", 1, 64),
    ):
        suffix, registers = {32: ("s", "w"), 64: ("d", "x")}[bits]
        words = {"T": f"uint{bits}_t", "s": suffix, "r": registers, "f": f"{suffix}3", **_factors(k)}
        words["h"] = "h" if k == 2 else suffix
        has = f"getauxval(AT_HWCAP2) >> {25 if bits == 64 else 23} & 1"  # HWCAP2_SME_F64F64, HWCAP2_SME
        flag = "smef64f64" if bits == 64 else "sme"
        for last in "as":
            body = _filled(_OUTER, opcode=opcode.format(last), **words)
            yield ("sme", name.format(last.upper())), Intrinsic(_ARM, has, flag, "arch=armv8.2-a", body)


def _mma() -> Iterator[tuple[tuple[str, str], Intrinsic]]:
    has = "getauxval(AT_HWCAP2) >> 17 & 1"  # PPC_FEATURE2_MMA
    for name, k, bits in (
        ("xvf16ger2", 2, 32),
        ("xvbf16ger2", 2, 32),
        ("xvf32ger", 1, 32),
        ("xvf64ger", 1, 64),
    ):
        for form in ("", "pp", "np", "pn", "nn"):
            call = f"__builtin_mma_{name}{form}(&d, x, y)"
            if bits == 64:
                call = "__vector_pair two;\n    __builtin_vsx_assemble_pair(&two, x, x);\n    " + call
                call = call.replace("(&d, x, y)", "(&d, two, y)")
            body = _filled(_ACCUMULATOR, T=f"uint{bits}_t", call=call, **_factors(k))
            yield ("power10", f"{name}{form}".upper()), Intrinsic(_POWER, has, "mma", "cpu=power10", body)


UNITS = {
    ("sapphire_rapids", "TDPBF16PS"): Intrinsic(_X86, "has_tiles()", "amx_bf16", "amx-tile,amx-bf16", _TILE),
    ("sapphire_rapids", "VDPBF16PS"): Intrinsic(
        _X86, "has(1, 'a', 5)", "avx512_bf16", "avx512f,avx512bf16", _PAIR
    ),
    ("sapphire_rapids", "VFMADD231PH"): Intrinsic(
        _X86, "has(0, 'd', 23)", "avx512_fp16", "avx512f,avx512fp16", _HALF
    ),
    ("armv8_6", "BFDOT"): Intrinsic(
        _ARM, "getauxval(AT_HWCAP2) >> 14 & 1", "bf16", "arch=armv8.2-a+bf16", _DOT
    ),
    ("armv8_6", "BFMMLA"): Intrinsic(
        _ARM, "getauxval(AT_HWCAP2) >> 14 & 1", "bf16", "arch=armv8.2-a+bf16", _MATRIX
    ),
    **dict(_sme()),
    **dict(_mma()),
}


def unit_of(instruction: Instruction) -> Intrinsic | None:
    """The unit that this instruction, or each link of this chain, is; None of a GPU's, or a hypothetical one."""
    name = instruction.name.partition("[K=")[0].partition(".K")[0]
    return UNITS.get((instruction.architecture, name))


def c_source(cases: Sequence[tuple[Instruction, int]], a: ArrayLike, b: ArrayLike, c: ArrayLike) -> str:
    """A self-contained C program that runs one dot product-add and compares it with what models predict.

    cases: each model with the bit pattern of d that it predicts; all have the same K and types.  Those that are a
    processor's unit are run where it has it, the others' predictions are told beside.
    a, b: shape (K,); c: shape ().  Bit patterns, or floats of the instructions' types, as in `Instruction.dot_add`.

    The program prints each d.  It exits with 0 if each unit that was run gave what its model predicts, 1 if one did
    not, 2 if nothing could be run.

    Raises CUnavailableError (a ValueError) if none is a processor's unit that has intrinsics, ValueError for cases of
    different K or types, and as `Instruction.dot_add`.
    """
    units = [(i, unit) for i, _ in cases if (unit := unit_of(i)) is not None]
    if not units:
        labels = " nor of ".join(i.label for i, _ in cases) or "no instruction"
        raise CUnavailableError(
            f"no C program of {labels}: it is no unit of a processor that has intrinsics for it"
        )
    first = units[0][0]
    for i, _ in cases:
        if (i.k, i.spec.types) != (first.k, first.spec.types):
            raise ValueError(f"{i.label} and {first.label} do not take the same inputs")
    spec = first.spec
    codes = {
        "a": as_codes(a, spec.a_format, "a"),
        "b": as_codes(b, spec.b_format, "b"),
        "c": as_codes(c, spec.c_format, "c"),
    }
    shapes = codes["a"].shape, codes["b"].shape, codes["c"].shape
    if shapes != ((spec.k,), (spec.k,), ()):
        raise ValueError(f"a and b have shape ({spec.k},), c has (): not {', '.join(map(str, shapes))}")
    digits = spec.d_format.storage_bits // 4
    return _PROGRAM.substitute(
        types=spec.types,
        preamble=preamble(units),
        A=_c_type(spec.a_format.storage_bits),
        D=_c_type(spec.d_format.storage_bits),
        K=spec.k,
        a=_c_array(codes["a"], spec.a_format.storage_bits),
        b=_c_array(codes["b"], spec.b_format.storage_bits),
        c=f"{int(codes['c']):#x}",
        functions="\n\n".join(function(i, unit, f"unit_{n}") for n, (i, unit) in enumerate(units)),
        predicted="\n".join(
            f'    printf("%-44s predicts 0x%0{digits}llx\\n", "{i.label}", {int(d):#x}ull);' for i, d in cases
        ),
        runs="\n".join(_run(n, i, unit, dict(cases)[i], digits) for n, (i, unit) in enumerate(units)),
    )


def preamble(units: Sequence[tuple[Instruction, Intrinsic]]) -> str:
    """Headers, and what tells whether the processor has a unit."""
    targets = {unit.target for _, unit in units}
    return "\n".join(text for target, text in _HEADERS if target in targets)


def function(instruction: Instruction, unit: Intrinsic, name: str) -> str:
    """A function of one issue: codes of its products, and c, give d."""
    spec, step = instruction.spec, instruction.k // instruction.issues
    factor, result = _c_type(spec.a_format.storage_bits), _c_type(spec.d_format.storage_bits)
    body = Template(unit.run).substitute(K=step)
    head = f'__attribute__((target("{unit.compiled_for}")))\n'
    head += f"static {result} {name}(const {factor} *a, const {factor} *b, {result} c)"
    return f"#ifdef {unit.target}\n// {instruction.label}: {step} products\n{head} {{\n{body}\n}}\n#endif"


def _run(number: int, i: Instruction, unit: Intrinsic, predicted: int, digits: int) -> str:
    return _RUN.substitute(
        target=unit.target, has=unit.has, flag=unit.flag, label=i.label, number=number, step=i.k // i.issues,
        D=_c_type(i.d_format.storage_bits), predicted=f"{predicted:#x}ull", digits=digits,
    )  # fmt: skip


def _c_type(bits: int) -> str:
    return f"uint{bits}_t"


def _c_array(codes: NDArray[Any], bits: int) -> str:
    return ", ".join(f"{int(code):#0{bits // 4 + 2}x}" for code in codes)


_ON_X86 = """\
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether CPUID leaf 7 has a bit, and the system keeps AVX-512's registers.
static int has(unsigned subleaf, char which, int bit) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xE6) != 0xE6 || !__get_cpuid_count(7, subleaf, &a, &b, &c, &d)) return 0;
    return (which == 'a' ? a : d) >> bit & 1;
}

// Tiles are large: Linux gives them to a process that asks (arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA).
__attribute__((unused)) static int has_tiles(void) {
    return has(0, 'd', 22) && has(0, 'd', 24) && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
#endif"""

_ON_ARM = """\
#ifdef __aarch64__
#include <arm_neon.h>
#include <sys/auxv.h>
#endif"""

_ON_POWER = """\
#ifdef __powerpc64__
#include <altivec.h>
#include <sys/auxv.h>
typedef vector unsigned char Bytes;
#endif"""

_HEADERS = (_X86, _ON_X86), (_ARM, _ON_ARM), (_POWER, _ON_POWER)

_RUN = Template("""\
#ifdef $target
    if (!($has)) {
        printf("$label: not run, this processor has no $flag\\n");
    } else {
        $D d = case_c;
        for (int k = 0; k < K; k += $step) d = unit_$number(case_a + k, case_b + k, d);
        printf("%-44s gives    0x%0${digits}llx: %s\\n", "$label, the unit,", (unsigned long long)d,
               d == $predicted ? "as its model says" : "its model is wrong");
        ran++, wrong += d != $predicted;
    }
#else
    printf("$label: not run, compiled for another processor\\n");
#endif""")

_PROGRAM = Template("""\
// One dot product-add ($types) on this processor, and what models predict.
//     cc -O1 case.c && ./a.out                      (gcc 12 or clang 16, and later)
//     aarch64-linux-gnu-gcc -static case.c && qemu-aarch64 -cpu max ./a.out
//     powerpc64le-linux-gnu-gcc -static case.c && qemu-ppc64le -cpu power10 ./a.out
#include <stdint.h>
#include <stdio.h>
$preamble

enum { K = $K };
static const $A case_a[K] = {$a};
static const $A case_b[K] = {$b};
static const $D case_c = $c;

$functions

int main(void) {
    int ran = 0, wrong = 0;
    (void)case_a, (void)case_b, (void)case_c;
$predicted
$runs
    if (!ran) printf("Nothing could be run.\\n");
    return ran ? wrong != 0 : 2;
}
""")
