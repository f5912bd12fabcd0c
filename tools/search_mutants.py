"""What `tools/tested.py` changes in searches: for the smallest case, in its laws and measures, in what it is about."""

from __future__ import annotations

from tested import Mutant

TITLE = "Mutants of searches"
WHAT = """\
Would the tests notice if a search called a case minimal that is not, or left one out? One thing is changed in what
looks for witnesses and makes them small, and the tests named with it are run."""


def of_all(name: str) -> tuple[str, ...]:
    """A search compared with all inputs there are."""
    return (
        f"tests/queries/test_find_difference.py::test_answers_are_those_of_looking_at_every_input[{name}]",
    )


def differences(test: str) -> tuple[str, ...]:
    return (f"tests/queries/test_find_difference.py::{test}",)


def least(test: str) -> tuple[str, ...]:
    return (f"tests/cases/test_smallest.py::{test}",)


def constraints(test: str) -> tuple[str, ...]:
    return (f"tests/queries/test_constraints.py::{test}",)


def witnesses(test: str) -> tuple[str, ...]:
    return (f"tests/package/test_witness.py::{test}",)


def guards(*tests: str) -> tuple[str, ...]:
    return tuple(f"tests/queries/test_search_guards.py::{test}" for test in tests)


_WITNESS = "mmaformal/witness.py"
_CODE = "mmaformal/cases/codes.py"
_INPUTS = "mmaformal/cases/inputs.py"
_CONSTRAINTS = "queries/constraints.py"
_QUESTIONS = "mmaformal/cases/questions.py"
_SMALLEST = "mmaformal/cases/smallest.py"
_GROUPED = "encodings/gfdrda/__init__.py"
_CASES_ALIKE = "mmaformal/cases/alike.py"
_SETTLE = "mmaformal/facts/settling.py"
_LAW = "mmaformal/facts/laws.py"
_ORDERS = "mmaformal/facts/orders.py"
_DIFFERENCE = "queries/find_difference.py"
_RELATIONS = "mmaformal/cases/relations.py"
_BOTH = "mmaformal/facts/both_encodings.py"
_CHAINS = "queries/long_chains.py"

_CODES = constraints("test_what_is_said_of_a_code_is_what_the_format_says")
_MEASURES = constraints("test_the_measures_of_a_code_are_those_of_its_fields")
_ALLOWS = constraints("test_each_constraint_allows_what_it_says")
_SIZES = witnesses("test_case_size_orders_cases")
_CLASSES = differences("test_steps_and_groups_and_scales_are_not_mixed")
_SCALES = guards("test_products_of_two_scales_within_a_step_are_not_alike")
_PLACES = guards("test_each_way_to_place_products_is_looked_at")
_OPEN = "test_what_is_not_settled_is_not_called_minimal"
_ALIKE = guards("test_what_is_alike_is_so_in_both_models_and_where_it_is_allowed")
_UNSETTLED = guards("test_a_law_that_is_not_settled_is_none")
_IDLE = guards("test_idle_steps_are_left_out_if_nothing_tells_them")
_RUNS = guards("test_products_are_alike_in_both_runs_and_in_what_is_allowed")
_STANDS = guards("test_what_stands_for_other_cases_breaks_a_relation_as_they_do")
_NOT_ALLOWED = guards("test_a_case_that_is_not_allowed_breaks_nothing")
_MERGE = guards("test_it_is_minimal_if_idle_steps_merge_and_zeros_are_alike")
_INDUCTION = guards("test_equal_by_induction_only_from_every_accumulator")
_SINGLE = guards("test_constraints_on_single_products_leave_nothing_out")
_MORE = guards("test_more_products_than_a_short_chain_stands_for_are_not_minimal")

MUTANTS: tuple[Mutant, ...] = (
    # ---- how large a case is
    Mutant(
        _WITNESS,
        "c does not count in the significand bits and exponents",
        "measured.append(of_c)",
        "pass",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "subnormals have an exponent of their own",
        "(max(field, 1) if fmt.has_zero else field)",
        "field",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "a product is zero where both factors are",
        "(a.zero or b.zero)",
        "(a.zero and b.zero)",
        _SIZES,
    ),
    Mutant(
        _WITNESS,
        "0·∞ is a zero product",
        "return a.finite and b.finite and (a.zero",
        "return (a.zero",
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
        _CODE,
        "codes below the NaN of e4m3 are NaNs",
        "both(top, fraction == (1 << fmt.fraction_bits) - 1)",
        "both(top, fraction != 0)",
        _CODES,
    ),
    Mutant(
        _CODE,
        "the NaN of FNUZ formats is a zero",
        "return both(zero, negation(is_nan(code, fmt)))",
        "return zero",
        _CODES,
    ),
    Mutant(
        _CODE,
        "a sum of sizes wraps",
        "len(terms).bit_length() + term.size()",
        "term.size()",
        constraints("test_at_most_does_not_wrap"),
    ),
    Mutant(
        _CODE,
        "a bound of sizes wraps",
        "max([bound.bit_length(), *(",
        "max([1, *(",
        constraints("test_at_most_adds_up"),
    ),
    Mutant(
        _CODE,
        "subnormals are farther from 1 than they are",
        "field = z3.If(field == 0, z3.BitVecVal(1, bits), field)",
        "pass",
        _MEASURES,
    ),
    Mutant(
        _CODE,
        "zero has an exponent",
        "return z3.If(is_zero(code, fmt), z3.BitVecVal(0, bits), distance)",
        "return distance",
        _MEASURES,
    ),
    Mutant(
        _CODE,
        "the last significand bit does not count",
        "for i in range(fraction.size())]",
        "for i in range(1, fraction.size())]",
        _MEASURES,
    ),
    Mutant(
        _CODE,
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
        _QUESTIONS,
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
        guards("test_of_cases_as_small_as_each_other_the_first_is_taken"),
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
    Mutant(
        _GROUPED,
        "even and odd products are alike",
        "return k // self.L, k % 2",
        "return k // self.L",
        _CLASSES,
    ),
    Mutant(
        _CASES_ALIKE,
        "products of two block scales are alike",
        "(spec.class_of(k), k // scale)",
        "(spec.class_of(k), 0)",
        _SCALES,
    ),
    Mutant(
        _LAW,
        "a law that is not settled holds",
        "            if holds is None:\n                return False",
        "            if holds is None:\n                return True",
        _UNSETTLED,
    ),
    Mutant(
        _LAW,
        "the order law holds without time for it",
        'return None if error.verdict == "unknown" else False',
        'return error.verdict == "unknown"',
        _UNSETTLED,
    ),
    Mutant(
        _LAW,
        "a law of one product that is not settled is proved",
        'gives the same", claim).verdict\n            if verdict != "unsat":',
        'gives the same", claim).verdict\n            if verdict == "sat":',
        _UNSETTLED,
    ),
    Mutant(
        _LAW,
        "what is asserted of a product may change",
        "claims += [z3.Implies(term, moved(term)) for term in sort(self.conditions)]",
        "pass",
        _ALIKE,
    ),
    Mutant(
        _CASES_ALIKE,
        "formats without a −0 have one",
        "return fmt.signed and fmt.has_zero and fmt.specials != Specials.FNUZ",
        "return fmt.signed and fmt.has_zero",
        guards("test_which_formats_have_a_minus_zero"),
    ),
    Mutant(
        _LAW,
        "more than the sign of a zero product may matter",
        "if any(not constant and not _is_bit(term) for term, _, constant in values.values()):",
        "if False:",
        least("test_laws"),
        same="what else matters is left free in the lemma that follows, which then does not hold",
    ),
    # ---- permutations
    Mutant(
        _ORDERS,
        "no two products of a block are exchanged",
        "if len(block) > 1:",
        "if len(block) == 1:",
        (
            "tests/facts/test_properties_structural.py::test_permutations_generate_those_within_blocks_and_between_them",
        ),
    ),
    Mutant(
        _ORDERS,
        "blocks are not rotated",
        "if len(block) > 2:",
        "if len(block) > 99:",
        (
            "tests/facts/test_properties_structural.py::test_permutations_generate_those_within_blocks_and_between_them",
        ),
    ),
    Mutant(
        _ORDERS,
        "scales stay where they are",
        "order[i * spec.scale_block] // spec.scale_block for i in range(spec.scales)",
        "i for i in range(spec.scales)",
        _SCALES,
    ),
    Mutant(
        _ORDERS,
        "products leave their scales",
        "if spec.scale_format is None or one[0] // spec.scale_block == other[0] // spec.scale_block:",
        "if True:",
        guards("test_products_change_places_across_steps_with_the_same_scales_only"),
    ),
    Mutant(
        _ORDERS,
        "the last two blocks of scales stay in place",
        "range(0, spec.k - S, S)",
        "range(0, spec.k - 2 * S, S)",
        _SCALES,
    ),
    # ---- the smallest case: places, and what is open
    Mutant(
        _QUESTIONS,
        "all products at once are not looked at",
        "if not 0 <= count <= sum(sizes):",
        "if not 0 <= count < sum(sizes):",
        _PLACES,
    ),
    Mutant(
        _QUESTIONS,
        "products that are fixed are alike",
        'key = (classes[k], self.pins.get(f"a{k}"), self.pins.get(f"b{k}"))',
        "key = (classes[k], None, None)",
        _PLACES,
    ),
    Mutant(
        _QUESTIONS,
        "a product that is fixed may be left out",
        "if free < 0:\n            return",
        "free = max(free, 0)",
        _PLACES,
    ),
    Mutant(
        _SMALLEST,
        "a bound that was not settled is refuted",
        "if refuted.get(way, 0) < best]",
        "if skipped.get(way, 0) < best]",
        guards(f"{_OPEN}[bounds]"),
    ),
    Mutant(
        _SMALLEST,
        "lesser codes that were not settled are ruled out",
        'return found, outcome.why if outcome.verdict == "unknown" else ""',
        'return found, ""',
        guards(f"{_OPEN}[codes]"),
    ),
    Mutant(
        _SMALLEST,
        "other places that were not settled are ruled out",
        '            if outcome.verdict == "unknown":\n                return found, outcome.why',
        "",
        guards(f"{_OPEN}[places]"),
    ),
    Mutant(
        _QUESTIONS,
        "the zero of a product is that of b",
        "            if self.licences.exchange:\n                return a, zero_b",
        "            if True:\n                return a, zero_b",
        guards("test_a_zero_product_may_have_a_large_factor_on_either_side"),
    ),
    Mutant(
        _QUESTIONS,
        "a factor that is fixed to zero has any zero beside it",
        'enough = not given_zero or (zeros == "signed" and has_minus_zero(y)) or zeros == "plus"',
        "enough = True",
        guards("test_a_zero_product_may_have_a_large_factor_on_either_side"),
    ),
    # ---- two models
    Mutant(
        _DIFFERENCE,
        "idle steps pass their c on",
        "one_step or prove_idle_steps_pass(self.asker, spec)",
        "True",
        guards("test_an_idle_step_that_cuts_its_c_is_not_left_out"),
    ),
    Mutant(
        _DIFFERENCE,
        "an idle step may change its c",
        "z3.If(is_nan(idle.c, d), is_nan(after, d), after == z3.If(idle.c == minus, plus, idle.c)),",
        "z3.BoolVal(True),",
        _IDLE,
    ),
    Mutant(
        _DIFFERENCE,
        "the step after an idle one may tell −0 from +0",
        "(with_plus.result == with_minus.result, [])",
        "(z3.BoolVal(True), [])",
        _IDLE,
    ),
    Mutant(
        _DIFFERENCE,
        "the step after an idle one may forget a NaN",
        "(z3.Implies(is_nan(busy.c, d), is_nan(with_any.result, d)), [])",
        "(z3.BoolVal(True), [])",
        _IDLE,
    ),
    Mutant(
        _DIFFERENCE,
        "the step before an idle one may give −0",
        "(with_any.result != minus, sums)",
        "(z3.BoolVal(True), sums)",
        _IDLE,
    ),
    Mutant(
        _DIFFERENCE,
        "products change places without a licence",
        "if self._laws.order(spec):",
        "if True:",
        guards("test_products_keep_their_places_where_order_is_not_proved"),
    ),
    Mutant(
        _DIFFERENCE,
        "zero products are alike in one model",
        "laws.zeros(models[0]) & laws.zeros(models[1])",
        "laws.zeros(models[0]) | laws.zeros(models[1])",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "two minus signs are none in one model",
        "all(map(laws.signs, models))",
        "any(map(laws.signs, models))",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "two minus signs are allowed where none are",
        ' and allowed("signs")',
        "",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "factors are exchanged where that is not allowed",
        '            and allowed("exchange")\n',
        "",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "+0·+0 is allowed where another zero product is",
        '{each for each in zeros if allowed("signed zeros" if each == "signed" else "zeros")}',
        "set(zeros)",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "products that a constraint compares are alike",
        "not any(terms.values for terms in of_products) and all",
        "all",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "a constraint tells no products apart",
        "list(zip(symmetry_classes(*models), told, strict=True))",
        "list(symmetry_classes(*models))",
        _ALIKE,
    ),
    Mutant(
        _DIFFERENCE,
        "results of the second model need not be allowed",
        " + constraint.on_result(self.spec, ry)",
        "",
        guards("test_constraints_on_results_are_about_both"),
    ),
    Mutant(
        _DIFFERENCE,
        "what no solver settles is equal",
        'if outcome.verdict == "unsat":\n                return Equal',
        'if outcome.verdict != "sat":\n                return Equal',
        guards("test_what_no_solver_settles_is_not_equal"),
    ),
    Mutant(
        _DIFFERENCE,
        "the last case is the best",
        "if self._best is None or self.size(found) < self.size(self._best):",
        "if True:",
        guards("test_the_best_so_far_is_the_smallest_so_far"),
    ),
    Mutant(
        _DIFFERENCE,
        "one number of products is left out",
        "range(len(self.forced) + _SPARSE + 1, self.products(found))",
        "range(len(self.forced) + _SPARSE + 2, self.products(found))",
        guards("test_fewer_products_are_asked_for_from_the_first_number_not_tried"),
    ),
    Mutant(
        _DIFFERENCE,
        "no products are not tried",
        "range(len(self.forced), min(self.spec.k, len(self.forced) + _SPARSE) + 1)",
        "range(len(self.forced) + 1, min(self.spec.k, len(self.forced) + _SPARSE) + 1)",
        of_all("only c differs"),
    ),
    Mutant(
        _DIFFERENCE,
        "what nothing satisfies proves anything",
        "if not isinstance(answer, Equal) or not self.constraints:",
        "if True:",
        constraints("test_constraints_that_nothing_satisfies_are_no_proof"),
    ),
    # ---- two runs
    Mutant(
        _SETTLE,
        "any exchange is one of the second run's",
        "return products(one) == products(other) and rest(one) == rest(other)",
        "return True",
        _RUNS,
    ),
    Mutant(
        _SETTLE,
        "only products are compared in the second run",
        " and rest(one) == rest(other)",
        "",
        _RUNS,
    ),
    Mutant(
        _SETTLE,
        "products are alike that what is allowed compares",
        "if any(terms.values for terms in allowed):",
        "if False:",
        _RUNS,
    ),
    Mutant(
        _SETTLE,
        "what is allowed tells no products apart",
        "key = classes[k], allowed[k].key",
        "key = classes[k]",
        _RUNS,
    ),
    Mutant(
        _SETTLE,
        "classes of the second run are those of one step",
        "classes = symmetry_classes(relation.right, relation.right)",
        "classes = [0] * self.spec.k",
        _RUNS,
    ),
    Mutant(
        _SETTLE,
        "zero products are alike in the first run",
        "laws.zeros(relation.left) & laws.zeros(relation.right)",
        "laws.zeros(relation.left)",
        _STANDS,
    ),
    Mutant(
        _SETTLE,
        "a zero product is one in the second run",
        '"plus" if self._image_keeps_zeros(inputs) else "any"',
        '"plus"',
        _STANDS,
    ),
    Mutant(
        _SETTLE,
        "factors are exchanged without a proof",
        'changes_nothing("exchange"), changes_nothing("signs")',
        'True, changes_nothing("signs")',
        _STANDS,
    ),
    Mutant(
        _SETTLE,
        "signs are dropped without a proof",
        'changes_nothing("exchange"), changes_nothing("signs")',
        'changes_nothing("exchange"), True',
        _STANDS,
    ),
    Mutant(
        _SETTLE,
        "no products are not tried",
        "    count = 0\n",
        "    count = 1\n",
        guards("test_no_products_are_tried_before_one"),
    ),
    Mutant(
        _SETTLE,
        "one relation that is settled settles all",
        "len(settled) == len(relations)",
        "settled",
        guards("test_relations_hold_if_each_is_settled"),
    ),
    Mutant(
        _SETTLE,
        "what is proved of zeros alone stands for a relation",
        "direct(*settled)",
        "direct(*asker.proved[-len(settled) :])",
        guards("test_relations_hold_if_each_is_settled"),
    ),
    Mutant(
        _RELATIONS,
        "a case of one wing is a witness",
        "if not broken[0] or any(differ):",
        "if not broken[0]:",
        guards("test_a_witness_of_a_relation_is_one_in_both_wings"),
    ),
    Mutant(
        _RELATIONS,
        "a case that is not allowed breaks a relation: terms",
        "broken if allowed is True else z3.And(allowed, broken)",
        "broken",
        _NOT_ALLOWED,
    ),
    Mutant(
        _RELATIONS,
        "a case that is not allowed breaks a relation: rows",
        "both(np.broadcast_to(allowed, first.shape), ~self.related(first, second))",
        "~self.related(first, second)",
        _NOT_ALLOWED,
    ),
    # ---- both encodings
    Mutant(
        _BOTH,
        "what was proved of other encodings is proved",
        "        and len(before) == len(now)\n        and all(x is y for x, y in zip(before, now, strict=True))\n",
        "",
        guards("test_what_was_proved_of_other_encodings_is_proved_again"),
    ),
    Mutant(
        _BOTH,
        "the encodings of the first instruction are enough",
        "            return settled\n        answer = settled",
        "            return settled\n        return settled",
        guards("test_the_encodings_of_both_instructions_have_to_be_equal"),
    ),
    Mutant(
        _BOTH,
        "the encodings of the first specification are enough",
        "for spec in dict.fromkeys(map(proved_for, specs)):",
        "for spec in [proved_for(specs[0])]:",
        guards("test_the_encodings_of_both_instructions_have_to_be_equal"),
    ),
    Mutant(
        _BOTH,
        "encodings whose equality is not settled are equal",
        "        if not isinstance(equal, Holds):",
        "        if isinstance(equal, Unknown):\n            continue\n        if not isinstance(equal, Holds):",
        guards("test_the_encodings_of_both_instructions_have_to_be_equal"),
    ),
    Mutant(
        _BOTH,
        "two steps may share a block of scales",
        "return spec.replace(k=2 * spec.period) if",
        "return spec.replace(k=2 * step) if",
        guards("test_two_steps_of_a_long_chain_have_whole_scales"),
    ),
    Mutant(
        _BOTH,
        "a chain of 64 steps is long",
        "if spec.k <= LONG_CHAIN * step:",
        "if spec.k < LONG_CHAIN * step:",
        ("tests/facts/test_both_encodings.py::test_a_long_chain_is_one_of_two_steps",),
    ),
    Mutant(
        _BOTH,
        "the rule of long chains is not told",
        "if proved_for(spec) != spec:",
        "if False:",
        ("tests/facts/test_both_encodings.py::test_a_long_chain_is_proved_by_a_rule_that_is_told",),
    ),
    # ---- long chains
    Mutant(
        _CHAINS,
        "one idle block fewer",
        "2 * products + 1\n\n",
        "2 * products\n\n",
        _MORE,
    ),
    Mutant(
        _CHAINS,
        "idle steps are left out that one side passes",
        "self._pass = all(map(one._idle_steps_pass, specs))",
        "self._pass = any(map(one._idle_steps_pass, specs))",
        guards("test_idle_steps_are_left_out_if_both_sides_pass_them"),
    ),
    Mutant(
        _CHAINS,
        "idle steps merge on one side",
        "self._pass or all(prove_idle_steps_merge(self.asker, spec) for spec in specs)",
        "self._pass or any(prove_idle_steps_merge(self.asker, spec) for spec in specs)",
        _MERGE,
    ),
    Mutant(
        _CHAINS,
        "zero products are alike without a proof",
        "return all(map(self.zeros_are_alike, specs)) and (",
        "return (",
        _MERGE,
    ),
    Mutant(
        _CHAINS,
        "more products than a chain stands for are the fewest",
        "if _products(short) <= products:",
        "if True:",
        _MORE,
    ),
    Mutant(
        _CHAINS,
        "blocks are equal later where they are at first",
        "if isinstance(one, Equal) and prove_induction(self.asker, self.x.spec, self.y.spec):",
        "if isinstance(one, Equal):",
        _INDUCTION,
    ),
    Mutant(
        _CHAINS,
        "blocks are equal from the accumulators that are allowed",
        "one = self._short(1, ()).answer()",
        "one = self._short(1, self.constraints).answer()",
        _INDUCTION,
    ),
    Mutant(
        _CHAINS,
        "a NaN may be forgotten later",
        "return all(_nans_stay(asker, spec, after, c) for spec, after, _ in functions)",
        "return True",
        guards("test_nans_that_are_forgotten_are_no_induction"),
    ),
    Mutant(
        _CHAINS,
        "constraints on single products are those of short chains",
        "if positions or any(each.forbids_zero for each in self.constraints):",
        "if any(each.forbids_zero for each in self.constraints):",
        _SINGLE,
    ),
    Mutant(
        _CHAINS,
        "zeros that are forbidden are left out",
        "if positions or any(each.forbids_zero for each in self.constraints):",
        "if positions:",
        _SINGLE,
    ),
    Mutant(
        _CHAINS,
        "a merged product is −0 where one is",
        "both = [tuple(x & y for",
        "both = [tuple(x | y for",
        ("tests/queries/test_long_chains.py::test_idle_steps_merge[ampere DMMA.884]",),
    ),
    Mutant(
        _CHAINS,
        "every case has an idle block",
        "        if not costs:\n            return None\n",
        "",
        guards("test_a_case_without_an_idle_block_is_tried_with_some"),
    ),
)
