"""What `tools/tested.py` changes in the compiled kernels, the GEMM that drives them, and exact error sums."""

from __future__ import annotations

from tested import Mutant

TITLE = "Mutants of kernels"
WHAT = """\
Would the tests notice if a kernel were wrong? One thing is changed in `mmaformal/kernels/`, `mmaformal/gemm.py` or
what errors are computed with, and the tests named with it are run."""

_F32 = "hopper HMMA.16816.F32"
_F16 = "hopper HMMA.16816.F16"
_SF = "rtx_blackwell QMMA.SF.16832.F32.E5M2.E3M2.E8"
_QMMA = "rtx_blackwell QMMA.16832.F32.E5M2.E4M3"
_OMMA = "rtx_blackwell OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"
_LOWERED = "hopper mma.m16n8k32.f32.e4m3.e4m3.f32"
_EFDA = "cdna1 v_mfma_f32_16x16x16f16"
_SORTED = "cdna1 v_mfma_f32_16x16x8bf16"
_GPS = "cdna2 v_mfma_f32_16x16x16f16"
_SFMA = "cdna2 v_mfma_f32_16x16x4f32"
_FDRDA = "cdna3 v_mfma_f32_16x16x16_f16"
_FDRDA_BF16 = "cdna3 v_mfma_f32_16x16x16_bf16"
_GFDRDA = "cdna3 v_mfma_f32_16x16x32_fp8_bf8"
_ODDSUM = "armv8_6 BFMMLA"


def near(name: str) -> tuple[str, ...]:
    return (f"tests/kernels/test_kernels.py::test_kernel_is_the_executable[{name}-near_one]",)


def bits(name: str) -> tuple[str, ...]:
    return (f"tests/kernels/test_kernels.py::test_kernel_is_the_executable[{name}-random_codes]",)


def zeros(name: str) -> tuple[str, ...]:
    return (f"tests/kernels/test_kernels.py::test_kernel_is_the_executable_on_zeros[{name}]",)


def emulated(name: str) -> tuple[str, ...]:
    return (f"tests/encodings/test_emulated.py::test_kernel_and_rows_are_the_executable[{name}]",)


def kernels(test: str) -> tuple[str, ...]:
    return (f"tests/kernels/test_kernels.py::{test}",)


def corners(test: str) -> tuple[str, ...]:
    return (f"tests/kernels/test_kernels_corners.py::{test}",)


def gemm(test: str) -> tuple[str, ...]:
    return (f"tests/package/test_gemm.py::{test}",)


_FUSED = "mmaformal/kernels/fused.py"
_EXACT = "mmaformal/kernels/exact.py"
_GROUP = "mmaformal/kernels/group.py"
_IEEE = "mmaformal/kernels/ieee.py"
_WIDTHS = "mmaformal/kernels/widths.py"
_GEMM = "mmaformal/gemm.py"
_REFERENCE = "mmaformal/kernels/reference.py"

MUTANTS: tuple[Mutant, ...] = (
    # ---- fda, fdrda, gfdrda
    Mutant(
        _FUSED,
        "a zero operand keeps the exponent of its fields",
        "exponents[i] = where(zero, zero_exponent, x.exponent)",
        "exponents[i] = x.exponent",
        zeros(_F32),
    ),
    Mutant(
        _FUSED,
        "the fourth of four exponents is forgotten",
        "e2 = e2 if e2 > e3 else e3",
        "e2 = e2",
        near(_F32),
    ),
    Mutant(
        _FUSED,
        "the smallest exponent is the largest",
        "out[j] = out[j] if out[j] < e else e",
        "out[j] = out[j] if out[j] > e else e",
        corners("test_a_zero_among_other_products_has_the_exponent_of_zero"),
    ),
    Mutant(
        _FUSED,
        "only the last chunk of terms is kept",
        "        if begin == start:\n            for j in range(n):",
        "        if begin >= start:\n            for j in range(n):",
        near(_QMMA),
    ),
    Mutant(
        _FUSED,
        "two of eight terms are dropped",
        "t0 = (t0 + t2) + (t4 + t6)",
        "t0 = (t0 + t2) + t4",
        near(_F32),
    ),
    Mutant(
        _FUSED,
        "zero products take part in the largest exponent",
        "e = maximum(where(e < least, FAR, e + blocks), c.exponent)",
        "e = maximum(e + blocks, c.exponent)",
        zeros(_F32),
    ),
    Mutant(
        _FUSED,
        "products are scaled with their block scales twice",
        "scale[j] = power_of_two(maximum(F - (e - blocks), floor), scale[j])",
        "scale[j] = power_of_two(maximum(F - e, floor), scale[j])",
        near(_SF),
    ),
    Mutant(
        _FUSED,
        "the scale of products has no floor",
        "scale[j] = power_of_two(maximum(F - (e - blocks), floor), scale[j])",
        "scale[j] = power_of_two(F - (e - blocks), scale[j])",
        (*near(_F32), *bits(_F32), *zeros(_F32)),
        same="the floor only keeps scaled products from being subnormal, which is slow; they are cut to 0 all the same",
    ),
    Mutant(
        _FUSED,
        "c is aligned one place short",
        "total[j] + align(addend, e, bits, F), e - F, rho)\n            d[j] = encode(rounded, rho)",
        "total[j] + align(addend, e, bits, F - 1), e - F, rho)\n            d[j] = encode(rounded, rho)",
        near(_F32),
    ),
    Mutant(
        _FUSED,
        "special values of B are not looked for",
        "special = special_a[i, s] | special_b[p, s]\n                if special:\n"
        "                    special_values(ka[i], kb[p], va[i], vb[p], k0, k1, np.inf, flags)",
        "special = special_a[i, s]\n                if special:\n"
        "                    special_values(ka[i], kb[p], va[i], vb[p], k0, k1, np.inf, flags)",
        bits(_F32),
    ),
    Mutant(
        _FUSED,
        "special values of c are not looked for",
        "nan, odd, e_max, total, special | some_c, flags, row)",
        "nan, odd, e_max, total, special, flags, row)",
        (*zeros(_F32), *near(_F32)),
    ),
    Mutant(
        _FUSED,
        "special values of one row are those of the next",
        "special | some_c, flags, row)\n                if special:\n                    flags[:] = 0",
        "special | some_c, flags, row)",
        bits(_F32),
    ),
    Mutant(
        _FUSED,
        "an e_zero above c's least exponent is not heeded",
        "self.zeros_count = parameters.e_zero is not None and parameters.e_zero > spec.c_format.min_exponent",
        "self.zeros_count = False",
        zeros("hopper HMMA.16816.F32[e_zero=-20]"),
    ),
    Mutant(
        _FUSED,
        "a NaN scale is none",
        "flags[j] |= where(nan_a[i, s] | nan_b[p, s, j], FLAG_NAN, 0)",
        "flags[j] |= where(nan_a[i, s], FLAG_NAN, 0)",
        bits(_SF),
    ),
    Mutant(
        _FUSED,
        "products of 2^128 are numbers",
        "where(special.positive_infinity | (p >= overflow), FLAG_POSITIVE, 0)",
        "where(special.positive_infinity, FLAG_POSITIVE, 0)",
        bits(_FDRDA_BF16),
    ),
    Mutant(
        _FUSED,
        "products overflow one binade later",
        "self.overflow = spec.d_format.max_exponent",
        "self.overflow = spec.d_format.max_exponent + 1",
        bits(_FDRDA_BF16),
    ),
    Mutant(
        _FUSED,
        "skipped products have the least exponent of products",
        "self.skipped = min(wide.least, spec.c_format.min_exponent)",
        "self.skipped = wide.least",
        zeros(_FDRDA),
    ),
    Mutant(
        _FUSED,
        "a dot product of zeros has an exponent",
        "e = where(e < least, skipped, e)",
        "e = where(e < least, least, e)",
        zeros(_FDRDA),
    ),
    Mutant(
        _FUSED,
        "groups are halves, not even and odd",
        "np.concatenate([np.arange(0, self.L, 2), np.arange(1, self.L, 2)])",
        "np.arange(self.L)",
        near(_GFDRDA),
    ),
    Mutant(
        _FUSED,
        "the odd group is aligned as the even one",
        "shift_right(odd, e - e_odd, cut)",
        "shift_right(odd, e - e_even, cut)",
        near(_GFDRDA),
    ),
    Mutant(
        _FUSED,
        "an uncut sum has the units of the products",
        "total, e_max - parameters.dot_bits, parameters.rho",
        "total, e_max - parameters.F, parameters.rho",
        near(f"{_FDRDA_BF16}[skip_zero_products=False][sum_bits=uncut]"),
    ),
    # ---- efda
    Mutant(
        _EXACT,
        "exact sums are shifted by one place",
        "limbs.shift_left(p.significand, p.exponent + lift)",
        "limbs.shift_left(p.significand, p.exponent + lift + 1)",
        near(_EFDA),
    ),
    Mutant(
        _EXACT,
        "a sum of zero has the exponent of sums",
        "where(limbs.is_zero(total), least, top)",
        "top",
        zeros(_EFDA),
    ),
    Mutant(
        _EXACT,
        "a second product where there is one",
        "where(two, second.significand, 0)",
        "second.significand",
        zeros(f"{_SORTED}[L=1][k=2]"),
    ),
    Mutant(
        _EXACT,
        "the frame is sized by ρ alone",
        "max(parameters.rho.fraction_bits, spec.c_format.fraction_bits) + 3",
        "parameters.rho.fraction_bits + 3",
        corners("test_a_coarse_rounding_of_c_and_the_least_products_there_are"),
    ),
    # ---- gdfs
    Mutant(
        _GROUP,
        "a group with a zero scale of B has the exponent of its scales",
        "empty = ((ma & mb[j]) == 0) | (sa == 0) | (sb[j] == 0)",
        "empty = ((ma & mb[j]) == 0) | (sa == 0)",
        (*near(_OMMA), *bits(_OMMA), *zeros(_OMMA)),
    ),
    Mutant(
        _GROUP,
        "a group of zero products has the exponent of its scales",
        "empty = ((ma & mb[j]) == 0) | (sa == 0) | (sb[j] == 0)",
        "empty = (sa == 0) | (sb[j] == 0)",
        zeros(_OMMA),
    ),
    Mutant(_GROUP, "groups are positive", "where(negative, 1, 0)", "0", near(_OMMA)),
    Mutant(
        _GROUP,
        "only the last group's scale may be NaN",
        "some_nan |= na[i, g]",
        "some_nan = na[i, g]",
        corners("test_a_scale_that_is_nan_in_each_group"),
    ),
    # ---- sfma, gps
    Mutant(
        _IEEE,
        "a NaN keeps the processor's payload",
        "row[j] = row[j] if row[j] == row[j] else nan\n\n\nclass SfmaKernel",
        "row[j] = row[j]\n\n\nclass SfmaKernel",
        bits(_SFMA),
    ),
    Mutant(
        _IEEE,
        "products are rounded before they are added",
        "row[j] = fma(x3, b[p, k + 3, j], y)",
        "row[j] = x3 * b[p, k + 3, j] + y",
        near(_SFMA),
    ),
    Mutant(
        _IEEE,
        "sfma's kernel is for any rounding",
        "return cls(spec) if ieee and p.nan",
        "return cls(spec) if p.nan",
        kernels("test_a_kernel_of_the_processors_arithmetic_is_for_its_rounding_only"),
    ),
    Mutant(
        _IEEE,
        "c is not flushed",
        "row[j] = np.float32(0) if bits_of(row[j]) & _EXPONENT == 0 else row[j]",
        "row[j] = row[j]",
        corners("test_a_subnormal_c_beside_products_almost_as_small"),
    ),
    Mutant(
        _IEEE,
        "−0 among the operands keeps its sign",
        "where((x.sign == 1) & (magnitude != 0), -magnitude, magnitude)",
        "where(x.sign == 1, -magnitude, magnitude)",
        corners("test_a_minus_zero_of_gps_beside_an_accumulator_that_was_flushed"),
    ),
    Mutant(
        _IEEE,
        "subnormal operands are kept",
        "where(x.significand < 1 << fmt.fraction_bits, 0, x.significand)",
        "x.significand",
        bits(_GPS),
    ),
    Mutant(
        _IEEE,
        "groups of four are summed from the left",
        "row[j] = flush(row[j] + flush(s + t))",
        "row[j] = flush(flush(row[j] + s) + t)",
        near(_GPS),
    ),
    # ---- lowered, plain, choosing
    Mutant(
        "mmaformal/kernels/lowered.py",
        "products are taken in order",
        "(np.arange(0, codes.shape[axis], len(self.order))[:, None] + self.order).reshape(-1)",
        "np.arange(codes.shape[axis])",
        near(_LOWERED),
    ),
    Mutant(
        "mmaformal/kernels/lowered.py",
        "fused steps start from c",
        "partial = np.zeros_like(d)",
        "partial = d.copy()",
        near(_LOWERED),
    ),
    # ---- emulated
    Mutant(
        "mmaformal/kernels/emulated.py",
        "corrections are added as they are",
        "if np.any(shift):",
        "if False:",
        emulated("ootomo(volta HMMA.884.F32.F32)"),
    ),
    Mutant(
        "mmaformal/kernels/emulated.py",
        "every program of a chain takes the first one's products",
        "first = program * p.blocks",
        "first = start * programs * p.blocks",
        emulated("ootomo(volta HMMA.884.F32.F32)"),
    ),
    Mutant(
        "mmaformal/kernels/emulated.py",
        "the words of B are the first ones",
        "self._word(b, j)",
        "self._word(b, 0)",
        emulated("bf16x9(ampere HMMA.1688.F32.BF16)"),
    ),
    Mutant(
        "mmaformal/kernels/emulated.py",
        "sums that are added to the total begin there",
        "partial = np.zeros_like(d) if part.every else d",
        "partial = d.copy() if part.every else d",
        emulated("promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=96, every=2)"),
    ),
    Mutant(
        "mmaformal/kernels/emulated.py",
        "a sum is scaled as if b were a",
        "- (of_a + of_b)",
        "- (of_a + of_a)",
        emulated("ozaki(volta HMMA.884.F32.F32, k=8)"),
    ),
    Mutant(
        "mmaformal/kernels/emulated.py",
        "every program of a chain has the first one's exponent in common",
        "a[-1][:, program, None]",
        "a[-1][:, 0, None]",
        emulated("ozaki(volta HMMA.884.F32.F32, k=8)"),
    ),
    Mutant(
        "mmaformal/kernels/rows/emulated.py",
        "every block has the products of the first",
        "slice(start + at * p.unit.k, start + (at + 1) * p.unit.k)",
        "slice(start, start + p.unit.k)",
        emulated("ootomo(volta HMMA.884.F32.F32, k=12)"),
    ),
    Mutant(
        "mmaformal/kernels/plain.py",
        "every instruction takes the first one's B",
        "np.tile(x[q, :n].astype(np.int64), len(c))",
        "np.tile(x[q - step * size, :n].astype(np.int64), len(c))",
        kernels("test_the_plain_executable_stands_in_where_a_kernel_cannot_hold_the_numbers"),
    ),
    Mutant(
        _FUSED,
        "a kernel of one scale for each step takes steps of two",
        "if spec.scale_format is not None and spec.scale_block % parameters.L:",
        "if False:",
        kernels("test_the_plain_executable_stands_in_where_a_kernel_cannot_hold_the_numbers"),
    ),
    # ---- widths
    Mutant(
        _WIDTHS,
        "sums in 32 bits take all terms of a step",
        "(np.int32, min(L, _INT32 // term))",
        "(np.int32, L)",
        kernels("test_the_largest_terms_do_not_overflow"),
    ),
    Mutant(
        _WIDTHS,
        "terms of more than 32 bits are held in 32",
        "if term <= _INT32 else (np.int64, L)",
        "if True else (np.int64, L)",
        kernels("test_widths_grow_with_what_they_must_hold"),
    ),
    Mutant(
        _WIDTHS,
        "products may have two bits more than the float",
        "exact = bits + 2 <= significand",
        "exact = bits <= significand",
        kernels("test_products_are_exact_in_the_float_they_are_held_in"),
    ),
    # ---- gemm
    Mutant(
        _GEMM,
        "no product is no instruction",
        "max(-(-self.b.shape[0] // instruction.k), 1)",
        "-(-self.b.shape[0] // instruction.k)",
        gemm("test_no_product_is_an_instruction_of_zero_products[hopper HMMA.16816.F32]"),
    ),
    Mutant(
        _GEMM,
        "c is held in words of d",
        "self.word = max((fmt.word for fmt in ends), key=lambda word: word.itemsize)",
        "self.word = ends[1].word",
        gemm("test_c_of_another_type_than_d"),
    ),
    Mutant(
        _GEMM,
        "a sum without a neighbour is lost",
        "level = pairs + level[2 * len(pairs) :]",
        "level = pairs",
        gemm("test_pairwise_with_an_odd_one_out"),
    ),
    Mutant(
        _GEMM,
        "tiles of a stream are cut one instruction late",
        "cuts = [0, *(cut - first for cut in inner), self.steps]",
        "cuts = [0, *(cut - first + 1 for cut in inner), self.steps]",
        gemm("test_stream_k"),
    ),
    Mutant(
        _GEMM,
        "a promoted accumulator is not started again",
        "            d = np.zeros(total.shape, self.word)\n            self.kernel.run",
        "            d = d if first else np.zeros(total.shape, self.word)\n            self.kernel.run",
        gemm("test_promotion"),
    ),
    # ---- errors, exactly
    Mutant(
        _REFERENCE,
        "ties do not look below",
        "(sticky or kept & 1 == 1)",
        "(kept & 1 == 1)",
        ("tests/package/test_statistics.py::test_errors_below_the_least_normal_number_are_rounded_once",),
    ),
    Mutant(
        _REFERENCE,
        "subnormals are rounded twice",
        "drop = min(max(bits - 53, -1074 - (place + low), 0), 62)",
        "drop = min(max(bits - 53, 0), 62)",
        ("tests/package/test_statistics.py::test_errors_below_the_least_normal_number_are_rounded_once",),
    ),
    Mutant(
        "mmaformal/kernels/again.py",
        "doubtful results stay",
        "if doubtful.any():",
        "if not doubtful.any():",
        kernels("test_doubtful_results_are_computed_again"),
    ),
    Mutant(
        "mmaformal/kernels/ffma.py",
        "of four results, the last one is doubted",
        "least[j] |= is_least(s) | is_least(t) | is_least(u) | is_least(v)",
        "least[j] |= is_least(v)",
        kernels("test_doubtful_results_are_computed_again"),
    ),
    Mutant(
        "mmaformal/kernels/ffma.py",
        "a result is not flushed before the next product",
        "u = fma(x2, b[p, k + 2, j], flush(t))",
        "u = fma(x2, b[p, k + 2, j], t)",
        kernels("test_flushed_results_are_tiny_where_the_executable_s_are[sapphire_rapids VDPBF16PS[k=8]]"),
    ),
    Mutant(
        "mmaformal/kernels/oddsum.py",
        "the odd neighbour is the larger one",
        "odd = np.int32(bits + 1) if way >= 0 else np.int32(bits - 1)",
        "odd = np.int32(bits + 1)",
        near(_ODDSUM),
    ),
    Mutant(
        "mmaformal/kernels/oddsum.py",
        "a sum that overflows is not doubted",
        "doubtful[i, begin + j] = lost[j] != 0",
        "doubtful[i, begin + j] = False",
        kernels("test_a_sum_rounded_to_odd_does_not_overflow_where_one_rounded_to_nearest_does"),
    ),
    Mutant(
        "mmaformal/kernels/staged.py",
        "b's NaN comes before a's",
        "where(x.nan, a | quiet, where(y.nan, b | quiet,",
        "where(y.nan, b | quiet, where(x.nan, a | quiet,",
        kernels("test_which_nan_is_the_first_one"),
    ),
)
