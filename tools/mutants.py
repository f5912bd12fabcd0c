"""Targets of tools/mutate.py, and who has to see a change of them: proofs that both encodings agree, or tests."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """Functions of a file of the package, and who is asked of a change of one of them."""

    file: str  #: below mmaformal/
    asked: tuple[
        str, ...
    ]  #: instructions, or tests (node ids and options of pytest), those that see most first
    functions: tuple[str, ...] = ("*",)  #: patterns of qualified names; `<module>` is what stands in none
    proved: bool = False  #: whether what is asked are instructions


# ---- encodings: proved equal, in both of which the same functions stand ------------------------------------------

_F16, _F32 = "volta HMMA.884.F16.F16", "turing HMMA.1688.F32"  # RNE-FP16, K = 4; RZ-FP32, K = 8
_FP8, _MX = "hopper QGMMA.64x8x32.F32.E4M3.E4M3", "rtx_blackwell QMMA.SF.16832.F32.E4M3.E4M3.E8"
_FDRDA, _GFDRDA = "cdna3 v_mfma_f32_32x32x8_f16", "cdna3 v_mfma_f32_32x32x16_fp8_fp8"
_SFMA, _SFMA_FP64 = "cdna1 v_mfma_f32_32x32x2f32", "ampere DMMA.884"  # the latter in two limbs
_EFDA, _EFDA_BF16 = "cdna1 v_mfma_f32_32x32x4f16", "cdna1 v_mfma_f32_32x32x2bf16"  # three terms, sorted
_STICKY, _STICKY_FINE = "datapath fda(k=4,frac_bits=12,cut=RO)", "datapath fda(k=2,frac_bits=30,cut=RO)"
_LOWERED = "hopper mma.m16n8k32.f16.e4m3.e5m2.f16"
_GFDA = "datapath gfda(k=4,group=2,frac_bits=12,a=e4m3,group_bits=16)"
_MULADD = "datapath mul_add(k=2,a=bf16,product=RNE-E8M7)"
_OOTOMO = "emulation ootomo(volta HMMA.884.F32.F32)"

#: The instructions of each algorithm that are asked.
INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "acc_e9s12": ("e9s12 DP4ACC8.BF16",),
    "dpa_e9s12": ("e9s12 DP1A.FP32",),
    "efda": (_EFDA, _EFDA_BF16, "cdna1 v_mfma_f32_16x16x8bf16"),  # the last is a chain
    "emulated": (
        _OOTOMO,
        "emulation ozaki(datapath fda(k=2,frac_bits=24), words=2)",
        "emulation promoted(volta HMMA.884.F32.F32, k=16, every=2)",
        "emulation bf16x9(ampere HMMA.1688.F32.BF16)",
    ),
    "fda": (_F16, _F32, _MX, "ampere HMMA.16816.F32"),
    "fdrda": (_FDRDA, "cdna3 v_mfma_f32_32x32x8_bf16", "cdna3 v_mfma_f32_32x32x4_xf32"),
    "ffma": ("sapphire_rapids VDPBF16PS",),
    "gdfs": (
        "rtx_blackwell OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
        "rtx_blackwell OMMA.SF.16864.F32.E2M1.E2M1.E8",
    ),
    "gfda": (_GFDA, "datapath gfda(k=4,group=2,frac_bits=12,a=fp16,group_bits=20,cut=RO)"),
    "gfdrda": (_GFDRDA,),
    "gps": ("cdna2 v_mfma_f32_32x32x2bf16", "cdna2 v_mfma_f32_32x32x4f16"),
    "lowered": (_LOWERED, "datapath sda(k=4,frac_bits=20,a=e4m3,b=e5m2)"),
    "muladd": (_MULADD,),
    "adder_tree": ("datapath tree(k=2,a=e4m3)",),
    "esda": ("diamond_rapids TDPHF8PS.K4",),
    "fma": ("datapath fma(a=bf16,nan=DEFAULT)",),
    "fma_flags": ("datapath flags(a=e5m2,rho=IEEE-E5M2)",),
    "integer_dot": ("datapath integer(k=4,a=int4,clamp=1,group=2,inner=6)",),
    "joined_fda": ("datapath joined(k=2,frac_bits=20,a=e4m3)",),
    "sorted_fda": ("datapath two_largest(frac_bits=26,a=e4m3)",),
    "residues": ("emulation ozaki2(fp32, k=1, bits=4)",),
    "rnd2": ("datapath pair_add(k=2,a=e4m3)",),
    "rvbna": ("riscv@printed vfqwbdota.vv.E4M3.n2", "riscv@corrected vfwbdota.vv.n2"),
    "oddsum": ("armv8_6 BFDOT", "armv8_6 BFMMLA"),
    "pfma": ("sapphire_rapids TDPBF16PS",),
    "sfma": (_SFMA, "sapphire_rapids VFMADD231PH"),
    "wfma": ("apple_amx fma16.F32",),
}
_BLOCKS = (
    _F16,
    _F32,
    _FP8,
    _FDRDA,
    _SFMA,
    _STICKY,
    "armv8_6 BFDOT",
    _MX,
    _GFDRDA,
    "ampere HMMA.1684.F32.TF32",
)
#: The instructions that are asked of what algorithms have in common.
COMMON: dict[str, tuple[str, ...]] = {
    "executable/blocks": _BLOCKS,
    "executable/chain": (_F16, _MULADD),
    "executable/limbs": (_EFDA, _SFMA_FP64),
    "executable/stages": (_F16, _F32, _STICKY_FINE, "datapath mul_add(k=1)", _MX),
    "smt/blocks": (*_BLOCKS, _SFMA_FP64),
    "smt/chain": (_F16, _MULADD),
    "smt/ieee": (_LOWERED, _OOTOMO),
    "smt/stages": (_F16, _F32, _STICKY_FINE, "datapath mul_add(k=1)", _GFDA, _MX),
}

_ENCODINGS = (
    *(Target(f"encodings/{file}.py", asked, proved=True) for file, asked in COMMON.items()),
    *(
        Target(f"encodings/{name}/{encoding}.py", asked, proved=True)
        for encoding in ("executable", "smt")
        for name, asked in INSTRUCTIONS.items()
    ),
)

#: Asked of an encoding that is proved equal all the same: the change may be of another instruction.
GOLDEN = ("tests/encodings/test_golden.py", "-k", "k4 or k8 or k2")

# ---- kernels -----------------------------------------------------------------------------------------------------

_KERNELS, _CORNERS = "tests/kernels/test_kernels.py", "tests/kernels/test_kernels_corners.py"


def _runs(*names: str) -> tuple[str, ...]:
    """The runs of instructions' kernels: numbers near one, codes by chance, zeros; and of rows."""
    test = f"{_KERNELS}::test_kernel_is_the_executable"
    asked = (f"{test}[{n}-near_one]" for n in names), (f"{test}[{n}-random_codes]" for n in names)
    rows = (f"tests/kernels/test_rows.py::test_rows_are_the_executable[{name}]" for name in names)
    return (*asked[0], *asked[1], *(f"{test}_on_zeros[{name}]" for name in names), *rows)


_ALIGNED = (
    *_runs("hopper HMMA.16816.F32", "rtx_blackwell QMMA.SF.16832.F32.E5M2.E3M2.E8"),
    *_runs("cdna3 v_mfma_f32_16x16x16_bf16", "cdna3 v_mfma_f32_16x16x32_fp8_bf8"),
    *_runs("rtx_blackwell QMMA.16832.F32.E5M2.E4M3"),
    _CORNERS,
)

_OF_KERNELS = (
    Target("encodings/fda/kernel.py", (*_ALIGNED, *_runs("hopper HMMA.16816.F32[F=54][e_zero=-20]"))),
    Target("kernels/fused.py", _ALIGNED),
    Target(
        "encodings/fdrda/kernel.py",
        _runs("cdna3 v_mfma_f32_16x16x16_bf16", "cdna3 v_mfma_f32_16x16x32_fp8_bf8"),
    ),
    Target(
        "encodings/efda/kernel.py",
        (*_runs("cdna1 v_mfma_f32_16x16x16f16", "cdna1 v_mfma_f32_16x16x8bf16"), _CORNERS),
    ),
    Target(
        "encodings/gdfs/kernel.py", (*_runs("rtx_blackwell OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"), _CORNERS)
    ),
    Target(
        "encodings/sfma/kernel/__init__.py",
        (
            *_runs("cdna2 v_mfma_f32_16x16x4f32"),
            *(_CORNERS, f"{_KERNELS}::test_a_kernel_of_the_processors_arithmetic_is_for_its_rounding_only"),
        ),
    ),
    Target("encodings/gps/kernel.py", (*_runs("cdna2 v_mfma_f32_16x16x16f16"), _CORNERS)),
    Target("kernels/floats.py", _runs("cdna2 v_mfma_f32_16x16x16f16", "armv8_6 BFMMLA")),
    Target("encodings/oddsum/kernel.py", _runs("armv8_6 BFMMLA")),
    Target("encodings/lowered/kernel.py", _runs("hopper mma.m16n8k32.f32.e4m3.e4m3.f32")),
    Target("encodings/emulated/kernel.py", ("tests/encodings/test_emulated.py", "-k", "kernel")),
    Target("kernels/widths.py", (_KERNELS, "-k", "widths or overflow or exact_in")),
    Target("gemm.py", ("tests/package/test_gemm.py", "tests/package/test_accumulation.py")),
)

# ---- searches ----------------------------------------------------------------------------------------------------

_GUARDS, _CONSTRAINTS = "tests/queries/test_search_guards.py", "tests/queries/test_constraints.py"
_DIFFERENCE, _SMALLEST = "tests/queries/test_find_difference.py", "tests/cases/test_smallest.py"

_SEARCHES = (
    Target("witness.py", ("tests/package/test_witness.py", _CONSTRAINTS)),
    Target("cases/codes.py", ("tests/cases/test_codes.py", _CONSTRAINTS, _GUARDS)),
    Target("cases/inputs.py", (_CONSTRAINTS, _GUARDS, _SMALLEST)),
    Target("queries/constraints.py", (_CONSTRAINTS, _GUARDS)),
    Target("cases/questions.py", (_GUARDS, _SMALLEST)),
    Target("cases/smallest.py", (_GUARDS, _SMALLEST)),
    Target("cases/symmetries.py", (_GUARDS, _DIFFERENCE)),
    Target("cases/relations.py", (_GUARDS,)),
    Target("facts/settling.py", (_GUARDS,)),
    Target("facts/laws.py", (_GUARDS,)),
    Target("facts/orders.py", (_GUARDS, "tests/facts/test_properties_structural.py")),
    Target("facts/both_encodings.py", (_GUARDS, "tests/facts/test_both_encodings.py")),
    Target("queries/find_difference.py", (_GUARDS, _DIFFERENCE)),
    Target("queries/long_chains.py", (_GUARDS, "tests/queries/test_long_chains.py")),
)

# ---- the kernel of proofs ----------------------------------------------------------------------------------------

_HOLES = "tests/proof/test_kernel_holes.py"
_RULES, _KERNEL = "tests/proof/test_rules.py", "tests/proof/test_proof_kernel.py"

_REALS = "tests/queries/test_bound.py"  # lemmas about real numbers

_PROOFS = (
    Target("proof/kernel.py", (_HOLES, _KERNEL, _RULES)),
    Target("proof/claims.py", (_HOLES, _KERNEL, _RULES)),
    Target("proof/composition.py", (_HOLES, _KERNEL), ("Composing.*",)),  # the rest only makes claims
    Target("proof/lemmas.py", (_HOLES, _KERNEL, "tests/certificates/test_arguments.py")),
    Target("proof/rules.py", (_RULES, _HOLES)),
    Target("solver/asking.py", (_HOLES, _KERNEL, "tests/solver/test_known.py")),
    Target(
        "solver/answers.py",
        (_HOLES, _KERNEL),
        ("<module>", "made_by", "Obligation.*", "Proof.*", "_demand_proof"),
    ),
    Target("solver/script.py", (_HOLES, _KERNEL, "tests/solver")),
    Target("solver/terms.py", (_HOLES, _KERNEL, "tests/solver/test_terms.py", _REALS)),
    Target("facts/chains.py", ("tests/facts/test_both_encodings.py",)),
)

SUBJECTS: dict[str, tuple[Target, ...]] = {
    "encodings": _ENCODINGS,
    "kernels": _OF_KERNELS,
    "searches": _SEARCHES,
    "proofs": _PROOFS,
}

#: Changes that no operator makes: file, what is changed, the text (which is there once, -), and what it becomes (+).
EXTRA = """\
encodings/executable/blocks.py: an array is changed in place, under its other name too
-    drop = exponent - rho.fraction_bits - unit
+    drop = exponent
+    drop -= rho.fraction_bits + unit
encodings/executable/blocks.py: a lane is compared with a number that is no integer
-exponent = where(magnitude == 0, least,
+exponent = where(magnitude == 0.5, least,
encodings/fda/executable.py: zero products keep the exponent of their fields
-stages.multiply(x, y, parameters.e_zero, pair)
+stages.multiply(x, y, None, pair)
encodings/executable/blocks.py: negative terms are cut down
-return signed(x.sign, (x.significand << max(F - fraction_bits, 0)) >> shift)
+return signed(x.sign, x.significand << max(F - fraction_bits, 0)) >> shift
encodings/executable/chain.py: the result is that of the first step
-return Trace(tuple(steps), c, stages)
+return Trace(tuple(steps), steps[0].result, stages)
encodings/executable/chain.py: the second block comes first
-for start in range(0, spec.k, size):
+for start in reversed(range(0, spec.k, size)):
encodings/fdrda/executable.py: the dot product is cut toward zero
-cut_dot = shift_right(dot.total << (dot_bits - F), e_max - dot.e_max, cut)
+cut_dot = shift_right(dot.total << (dot_bits - F), e_max - dot.e_max, type(cut).RZ)
encodings/gps/executable.py: pairs are of products two apart
-zip(level[0::2], level[1::2], strict=True)
+zip(level[: len(level) // 2], level[len(level) // 2 :], strict=True)
encodings/lowered/executable.py: products are taken in the order given
-a_codes = [stages.convert(a[k], spec.a_format, to_a) for k in parameters.order]
+a_codes = [stages.convert(x, spec.a_format, to_a) for x in a]
encodings/emulated/executable.py: the exponent in common is that of the first factor
-return Common(fields, reduce(maximum, fields))
+return Common(fields, fields[0])
encodings/emulated/smt.py: products of words are taken in the other order
-for of_a, of_b in part.products:
+for of_a, of_b in reversed(part.products):
encodings/smt/blocks.py: a NaN c is a number
-nan.append(c.nan)
+nan.append(z3.BoolVal(False))
encodings/lowered/smt.py: c enters the fda steps
-zero = stages.zero(spec.d_format)
+zero = c
encodings/fda/kernel.py: special values of one row are those of the next
-special | some_c, flags, row)
-                if special:
-                    flags[:] = 0
+special | some_c, flags, row)
encodings/fdrda/kernel.py: an uncut sum has the units of the products
-total, e_max - parameters.dot_bits, parameters.rho
+total, e_max - parameters.F, parameters.rho
encodings/gdfs/kernel.py: only the last group's scale may be NaN
-some_nan |= na[i, g]
+some_nan = na[i, g]
encodings/sfma/kernel/__init__.py: products are rounded before they are added
-row[j] = fma(x3, b[p, k + 3, j], y)
+row[j] = x3 * b[p, k + 3, j] + y
encodings/gps/kernel.py: groups of four are summed from the left
-row[j] = flush(row[j] + flush(s + t))
+row[j] = flush(flush(row[j] + s) + t)
encodings/lowered/kernel.py: products are taken in order
-(np.arange(0, codes.shape[axis], len(self.order))[:, None] + self.order).reshape(-1)
+np.arange(codes.shape[axis])
encodings/lowered/kernel.py: fused steps start from c
-partial = np.zeros_like(d)
+partial = d.copy()
encodings/emulated/kernel.py: sums that are added to the total begin there
-partial = np.zeros_like(total) if part.every else total
+partial = total.copy() if part.every else total
gemm.py: c is held in words of d
-self.word = max((fmt.word for fmt in ends), key=lambda word: word.itemsize)
+self.word = ends[1].word
witness.py: scales of b do not count
-for x in (*scale_a, *scale_b)]
+for x in scale_a]
queries/constraints.py: codes of b are fixed at a
-pins[f"{side}{position}"] = code
+pins[f"a{position}"] = code
cases/smallest.py: what was not looked at is taken to be done
-complete = len(ways) <= _WAYS
+complete = True
cases/symmetries.py: products of two block scales are alike
-(spec.class_of(k), k // scale)
+(spec.class_of(k), 0)
cases/questions.py: products that are fixed are alike
-key = (classes[k], self.pins.get(f"a{k}"), self.pins.get(f"b{k}"))
+key = (classes[k], None, None)
cases/questions.py: a product that is fixed may be left out
-if free < 0:
-            return
+free = max(free, 0)
queries/find_difference.py: an idle step may change its c
-z3.If(is_nan(idle.c, d), is_nan(after, d), after == z3.If(idle.c == minus, plus, idle.c)),
+z3.BoolVal(True),
queries/find_difference.py: the step after an idle one may forget a NaN
-(z3.Implies(is_nan(busy.c, d), is_nan(with_any.result, d)), [])
+(z3.BoolVal(True), [])
queries/find_difference.py: a constraint tells no products apart
-list(zip(symmetry_classes(*models), told, strict=True))
+list(symmetry_classes(*models))
facts/settling.py: factors are exchanged without a proof
-changes_nothing("exchange"), changes_nothing("signs")
+True, changes_nothing("signs")
facts/settling.py: one relation that is proved stands for all
-if relations and len(settled) == len(relations):
+if settled:
facts/both_encodings.py: the encodings of the first instruction are enough
-            return settled
-        answer = settled
+            return settled
+        return settled
facts/both_encodings.py: encodings whose equality is not settled are equal
-        if not isinstance(equal, Holds):
+        if isinstance(equal, Unknown):
+            continue
+        if not isinstance(equal, Holds):
facts/both_encodings.py: two steps may share a block of scales
-return spec.replace(k=2 * spec.period) if
+return spec.replace(k=2 * step) if
queries/long_chains.py: blocks are equal from the accumulators that are allowed
-one = self._short(1, ()).answer()
+one = self._short(1, self.constraints).answer()
proof/kernel.py: an inference forgets its premises
-Inference(premises, claims, uses=uses, given=given)
+Inference((), claims, uses=uses, given=given)
proof/kernel.py: an inference forgets its first premise
-Inference(premises, claims, uses=uses, given=given)
+Inference(premises[1:], claims, uses=uses, given=given)
proof/claims.py: premises of an inference are alternatives
-premises = conjunction([self(claim) for claim in inference.premises])
+premises = z3.Or([self(claim) for claim in inference.premises])
proof/claims.py: an inference goes both ways
-return said if inference.assumed else z3.Implies(premises, said)
+return said if inference.assumed else premises == said
proof/kernel.py: a split claims its first case
-premises, claims, cases=True
+premises, claims[:1], cases=True
proof/kernel.py: all terms are cut to one constant
-wanted = [_constant(n, term) for n, term in enumerate(free.values(), len(pairs))]
+wanted = [_constant(0, term) for term in free.values()]
proof/kernel.py: the conclusion is the last claim, whatever is said
-        claim = conclusion.said if isinstance(conclusion, Link) else conclusion
+        claim = self.inferences[-1].claims[0]
proof/claims.py: the conclusion is the first claim
-formula = z3.Implies(conjunction(premises), said(conclusion))
+formula = z3.Implies(conjunction(premises), z3.Bool('p0'))
proof/kernel.py: two conclusions change places
-self._concluded = self._add(lemma, text), claim
+self._concluded = self.composition or self._add(lemma, text), claim
proof/claims.py: not is nothing
-    z3.Z3_OP_NOT: z3.Not,
+    z3.Z3_OP_NOT: lambda x: x,
proof/claims.py: implies goes the other way
-    z3.Z3_OP_IMPLIES: z3.Implies,
+    z3.Z3_OP_IMPLIES: lambda x, y: z3.Implies(y, x),
proof/kernel.py: a proof is gathered of some of its lemmas
-    if any(each not in by_digest for each in theorem.lemmas):
-        return None
+    theorem = Digests(tuple(each for each in theorem.lemmas if each in by_digest), theorem.rules, key=_KEY)
proof/kernel.py: of two proofs the first one's conclusion is the last
-    return Proof((*before.values(), *proofs[-1].obligations), tuple(rules), key=_KEY)
+    return Proof((*proofs[-1].obligations, *before.values()), tuple(rules), key=_KEY)
solver/answers.py: anybody has the kernel's key
-    if module not in _KEYS:
+    if not _KEYS.get(module, _KEYS["mmaformal.proof.kernel"]):
proof/composition.py: a claim's premises are forgotten
-            self._infers(Inference(using, (claim,), uses=uses
+            self._infers(Inference((), (claim,), uses=uses
solver/asking.py: claims are cut to one constant
-constant_like(f"cut{i}", term)
+constant_like("cut", term)
facts/chains.py: a loop is followed for two steps
-    same = all(_alike(shape, wanted[min(i, 1)]) for i, shape in enumerate(shapes))
+    same = all(_alike(shape, wanted[i]) for i, shape in zip(range(2), shapes, strict=False))
solver/asking.py: of several claims one or the other is proved
-    return z3.And(*premises, z3.Not(claim))
+    return z3.And(*premises, *map(z3.Not, claims))
solver/asking.py: a claim may have the constant in the place of a term
-apart(wanted, [goal])
+wanted
proof/kernel.py: a lemma may have the constant in the place of a term
-apart(wanted, [goal, *determined])
+wanted
proof/kernel.py: a lemma has the words of whoever asked first
-        return restated(known, name, lemma.statement, lemma=True)
+        return known
proof/claims.py: what is given inside an alternative is overlooked
-others = [premise_of(each) for each in parts if not z3.is_not(each)]
+others = [z3.BoolVal(True) for each in parts if not z3.is_not(each)]
"""

#: Mutants that change nothing: file, text, what it becomes, and why.
EQUAL: tuple[tuple[str, str, str, str], ...] = (
    (
        "gemm.py",
        "columns.stop - columns.start",
        "(columns.stop + columns.start)",
        "the number of products is told as progress, and computes nothing",
    ),
    (
        "kernels/widths.py",
        "np.dtype(self.exponent).itemsize + np.dtype(self.value).itemsize",
        "np.dtype(self.exponent).itemsize",
        "bytes of an element say how large a block is, and compute nothing",
    ),
    (
        "gemm.py",
        "23",
        "22",
        "bytes of planes say how large a block is, and compute nothing",
    ),
    (
        "cases/relations.py",
        "64",
        "63",
        "how many codes are run at a time, and computes nothing",
    ),
    (
        "encodings/fda/kernel.py",
        "parameters.e_zero is not None and parameters.e_zero > spec.c_format.min_exponent",
        "(parameters.e_zero is not None)",
        "zeros are counted where that changes nothing: c's exponent is no less than theirs",
    ),
    (
        "encodings/efda/kernel.py",
        "13",
        "14",
        "bytes of an element say how large a block is, and compute nothing",
    ),
    (
        "encodings/lowered/kernel.py",
        "p.inner_dot_add(spec)",
        "spec",
        "factors are converted exactly: the terms are the same numbers in the format that they came in",
    ),
    (
        "solver/asking.py",
        "z3.simplify(alone, timeout=_SIMPLIFYING)",
        "z3.simplify(alone)",
        "the simplifier's time has no limit; what it makes of a question is the same",
    ),
    (
        "proof/kernel.py",
        'f"_{term.size()}" if isinstance(term, z3.BitVecRef) else ""',
        "''",
        "the place in a constant's name tells it from others; its size is for readers",
    ),
)

HEAD = """\
# Mutants

Would the proofs and the tests notice if one thing were wrong? Written by `python tools/mutate.py --write {path}`, of
what was asked so far; do not edit. Operators on the syntax tree change one thing in the files that `tools/mutants.py`
names; `python tools/mutate.py SUBJECT --limit N --seed S` draws N mutants of each function and asks.

- **caught**: the proof that both encodings agree fails, with an input that was run through both; or a test fails.
- **stopped**: an exception, or nothing settled within the time. Nothing is proved or computed of such a mutant.
- **equal**: the change changes nothing. Of encodings that is proved, for the instructions that are asked, and the
  golden vectors agree; of all else the reason is written down in `tools/mutants.py`.
- **survived**: nothing saw it.

Those *by hand* are changes that no operator makes, each a mistake that was made once or is easy to make.
"""

NOTED = "What changed nothing, or was seen by nothing:\n"
