"""What `tools/tested.py` changes in searches: for the smallest case, in its laws and measures, in what it is about."""

from __future__ import annotations

from tested import Mutant

TITLE = "Mutants of searches"
WHAT = """\
Would the tests notice if a search called a case minimal that is not, or left one out? One thing is changed in what
looks for witnesses and makes them small, and the tests named with it are run."""


def of_all(name: str) -> tuple[str, ...]:
    """A search compared with all inputs there are."""
    return (f"tests/test_find_difference.py::test_answers_are_those_of_looking_at_every_input[{name}]",)


def differences(test: str) -> tuple[str, ...]:
    return (f"tests/test_find_difference.py::{test}",)


def least(test: str) -> tuple[str, ...]:
    return (f"tests/test_smallest.py::{test}",)


def constraints(test: str) -> tuple[str, ...]:
    return (f"tests/test_constraints.py::{test}",)


def witnesses(test: str) -> tuple[str, ...]:
    return (f"tests/test_witness.py::{test}",)


_WITNESS = "mmaformal/witness.py"
_INPUTS = "queries/inputs.py"
_CONSTRAINTS = "queries/constraints.py"
_SMALLEST = "queries/smallest.py"
_SYMMETRIES = "queries/symmetries.py"

_CODES = constraints("test_what_is_said_of_a_code_is_what_the_format_says")
_MEASURES = constraints("test_the_measures_of_a_code_are_those_of_its_fields")
_ALLOWS = constraints("test_each_constraint_allows_what_it_says")
_SIZES = witnesses("test_case_size_orders_cases")
_CLASSES = differences("test_steps_and_groups_and_scales_are_not_mixed")

MUTANTS: tuple[Mutant, ...] = (
    # ---- how large a case is
    Mutant(
        _WITNESS,
        "c does not count in the significand bits and exponents",
        "operands.append((c, spec.c_format))",
        "operands += []",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "subnormals have an exponent of their own",
        "(max(exponent, 1) if fmt.has_zero else exponent)",
        "exponent",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "a product is zero where both factors are",
        "(_is_zero(a, a_format) or _is_zero(b, b_format))",
        "(_is_zero(a, a_format) and _is_zero(b, b_format))",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "0·∞ is a zero product",
        "return finite and (_is_zero",
        "return (_is_zero",
        witnesses("test_zero_times_infinity_is_no_zero_product"),
    ),
    Mutant(
        _WITNESS,
        "scales of b do not count",
        "for x in (*scale_a, *scale_b)]",
        "for x in scale_a]",
        witnesses("test_scales_are_part_of_the_case"),
    ),
    Mutant(
        _WITNESS,
        "NaNs without a known payload differ",
        "return not (both_nan and not (x.nan_is_canonical and y.nan_is_canonical))",
        "return True",
        witnesses("test_nans_differ_where_both_payloads_are_known"),
    ),
    Mutant(
        _WITNESS,
        "NaNs of known payloads are alike",
        "return not (both_nan and not (x.nan_is_canonical and y.nan_is_canonical))",
        "return not both_nan",
        witnesses("test_nans_differ_where_both_payloads_are_known"),
    ),
    # ---- what a code is
    Mutant(
        _INPUTS,
        "codes below the NaN of e4m3 are NaNs",
        "z3.And(top, fraction == z3.BitVecVal(-1, fmt.fraction_bits))",
        "z3.And(top, fraction != 0)",
        _CODES,
    ),
    Mutant(
        _INPUTS,
        "the NaN of FNUZ formats is a zero",
        "return z3.And(zero, z3.Not(is_nan(code, fmt)))",
        "return zero",
        _CODES,
    ),
    Mutant(
        _INPUTS,
        "a sum of sizes wraps",
        "len(terms).bit_length() + term.size()",
        "term.size()",
        constraints("test_at_most_does_not_wrap"),
    ),
    Mutant(
        _INPUTS,
        "a bound of sizes wraps",
        "max([bound.bit_length(), *(",
        "max([1, *(",
        constraints("test_at_most_adds_up"),
    ),
    Mutant(
        _INPUTS,
        "subnormals are farther from 1 than they are",
        "field = z3.If(field == 0, z3.BitVecVal(1, bits), field)",
        "pass",
        _MEASURES,
    ),
    Mutant(
        _INPUTS,
        "zero has an exponent",
        "return z3.If(is_zero(code, fmt), z3.BitVecVal(0, bits), distance)",
        "return distance",
        _MEASURES,
    ),
    Mutant(
        _INPUTS,
        "the last significand bit does not count",
        "for i in range(fraction.size())]",
        "for i in range(1, fraction.size())]",
        _MEASURES,
    ),
    Mutant(
        _INPUTS,
        "the sign is the bit below",
        "top = fmt.storage_bits - 1\n",
        "top = fmt.storage_bits - 2\n",
        _MEASURES,
    ),
    Mutant(
        _INPUTS,
        "bits that the unit ignores stay set",
        "used = value >> fmt.ignored_low_bits << fmt.ignored_low_bits",
        "used = value",
        least("test_a_case_has_no_bits_that_the_unit_ignores"),
    ),
    Mutant(
        _INPUTS,
        "what is to be positive may be negative",
        "[z3.BitVecVal(0, 1)] if name in positive else []",
        "[]",
        constraints("test_codes_of_a_model_are_those_of_its_terms"),
    ),
    # ---- constraints
    Mutant(
        _CONSTRAINTS,
        "zeros are not normal",
        "z3.Or(exponent_field(x, fmt) != 0, is_zero(x, fmt))",
        "exponent_field(x, fmt) != 0",
        _ALLOWS,
    ),
    Mutant(
        _CONSTRAINTS,
        "zeros have to be within a magnitude",
        "z3.Or(is_zero(x, fmt), self._within(x, fmt))",
        "self._within(x, fmt)",
        _ALLOWS,
    ),
    Mutant(
        _CONSTRAINTS,
        "the largest magnitude is not within",
        "first(high, strictly=True)",
        "first(high, strictly=False)",
        _ALLOWS,
    ),
    Mutant(
        _CONSTRAINTS,
        "results may be infinite",
        "return [is_finite(result, spec.d_format)]",
        "return []",
        constraints("test_finite_asks_it_of_the_result_too"),
    ),
    Mutant(
        _CONSTRAINTS,
        "scales of b may be NaN",
        "for x in (*inputs.scale_a, *inputs.scale_b)]",
        "for x in inputs.scale_a]",
        constraints("test_finite_asks_it_of_scales_too"),
    ),
    Mutant(
        _CONSTRAINTS,
        "codes of b are fixed at a",
        'pins[f"{side}{position}"] = code',
        'pins[f"a{position}"] = code',
        constraints("test_fixed_positions_and_codes_exist"),
    ),
    # ---- the smallest case
    Mutant(
        _SMALLEST,
        "what was not looked at is taken to be done",
        "complete = len(ways) <= _WAYS",
        "complete = True",
        differences("test_of_places_not_looked_at_nothing_is_called_minimal"),
    ),
    Mutant(
        _SMALLEST,
        "factors are put in order without a licence",
        "if not self.licences.exchange:\n            return []",
        "",
        of_all("large b"),
    ),
    Mutant(
        _SMALLEST,
        "other places are not tried for an objective",
        "for way in ways if better is None else ():",
        "for way in ():",
        of_all("places differ"),
    ),
    Mutant(
        _SMALLEST,
        "an objective may grow again by one",
        "bounds.append(objective.at_most(best))",
        "bounds.append(objective.at_most(best + 1))",
        (*of_all("one product"), *of_all("places differ")),
    ),
    Mutant(
        _SMALLEST,
        "trailing significands are 0 from then on",
        'objective.name == "significand bits set" and best == 0',
        'objective.name == "significand bits set"',
        (*of_all("one product"), *of_all("two of FNUZ")),
    ),
    Mutant(
        _SMALLEST,
        "what is open is called minimal",
        'if reason and not zero else "proved minimal")',
        'if not zero and not reason and reason else "proved minimal")',
        differences("test_of_places_not_looked_at_nothing_is_called_minimal"),
    ),
    Mutant(
        _SMALLEST,
        "ties are not settled",
        'name = "lesser codes"\n',
        'return found, ""\n',
        least("test_whichever_solver_answers_the_case_is_the_same"),
    ),
    Mutant(
        _SMALLEST,
        "fewer products that were not settled are forgotten",
        "self.unsettled.setdefault(count, outcome.why)",
        "pass",
        least("test_what_no_solver_settles_is_open"),
    ),
    Mutant(
        _SMALLEST,
        "fewer products that are not settled are ruled out",
        'if asked else ""',
        'if not self.unsettled else ""',
        least("test_what_no_solver_settles_is_open"),
    ),
    # ---- which cases are alike
    Mutant(_SYMMETRIES, "even and odd products are alike", "return step, k % 2", "return step", _CLASSES),
    Mutant(
        _SYMMETRIES,
        "products of two block scales are alike",
        "(place(spec, k), k // scale)",
        "(place(spec, k), 0)",
        _CLASSES,
    ),
)
