"""What `tools/tested.py` changes in the kernel of proofs: a proof of what is not so, or of another thing."""

from __future__ import annotations

from tested import Mutant

TITLE = "Mutants of the kernel of proofs"
WHAT = """\
Would the tests notice if the kernel proved what is not so? A premise is left out, a case dropped, something else
concluded, and the tests named with it are run."""

_KERNEL = "mmaformal/proof/kernel.py"
_CLAIMS = "mmaformal/proof/composition.py"
_LINKS = "mmaformal/proof/lemmas.py"
_ANSWERS = "mmaformal/solver/answers.py"
_ASKING = "mmaformal/solver/asking.py"
_SCRIPT = "mmaformal/solver/script.py"
_RULES = "mmaformal/proof/rules.py"
_TERMS = "mmaformal/solver/terms.py"
_TRACES = "mmaformal/lanes.py"
_CHAINS = "mmaformal/facts/chains.py"


def seen(*tests: str) -> tuple[str, ...]:
    return tuple(f"tests/proof/test_proof_kernel.py::{test}" for test in tests)


def holes(*tests: str) -> tuple[str, ...]:
    return tuple(f"tests/proof/test_kernel_holes.py::{test}" for test in tests)


def ruled(test: str) -> tuple[str, ...]:
    return (f"tests/proof/test_rules.py::{test}",)


def loops(test: str) -> tuple[str, ...]:
    return (f"tests/facts/test_both_encodings.py::{test}",)


_NEEDED = seen("test_what_is_used_has_to_be_derived_or_assumed")
_FOLLOWS = seen("test_a_claim_follows_from_claims_before")
_ONE = seen("test_one_claim_from_another")
_CUT = seen("test_terms_that_are_cut_are_any")
_CASES = seen("test_one_of_the_cases_is_not_all_of_them")
_VALUES = seen("test_each_value_is_a_case")
_DEFINED = seen("test_what_a_claim_determines_is_part_of_it")
_SETTLED = seen("test_what_is_not_settled_is_not_proved")
_GATHERED = seen("test_a_proof_is_gathered_of_all_its_lemmas")
_TOGETHER = seen("test_proofs_are_put_together_with_the_last_conclusion_last")
_KEYS = seen("test_only_the_kernel_makes_a_proof")
_LAST = seen("test_the_conclusion_is_the_last_lemma")
_WORDS = seen("test_connectives_are_what_they_are")
_ONCE = seen("test_a_claim_is_proved_once_and_with_its_premises")
_LANES = seen("test_a_lane_is_in_its_range_and_its_rules_are_lemmas")
_INFERS = seen("test_a_premise_of_an_inference_is_needed_only_if_it_is_one")

MUTANTS = (
    Mutant(
        _KERNEL,
        "an inference forgets its premises",
        "Inference([link.said for link in given], [link.said for link in links])",
        "Inference((), [link.said for link in links])",
        _NEEDED,
    ),
    Mutant(
        _KERNEL,
        "an inference forgets its first premise",
        "Inference([link.said for link in given], [link.said for link in links])",
        "Inference([link.said for link in given[1:]], [link.said for link in links])",
        _NEEDED,
    ),
    Mutant(
        _KERNEL,
        "premises of an inference are alternatives",
        "premises = conjunction([self(claim) for claim in inference.premises])",
        "premises = z3.Or([self(claim) for claim in inference.premises])",
        _INFERS,
    ),
    Mutant(
        _KERNEL,
        "an inference goes both ways",
        "return said if inference.assumed else z3.Implies(premises, said)",
        "return said if inference.assumed else premises == said",
        seen("test_a_claim_does_not_follow_from_what_follows_from_it"),
    ),
    Mutant(
        _KERNEL,
        "an inference is taken for its claim",
        "return said if inference.assumed else z3.Implies(premises, said)",
        "return said",
        _NEEDED,
    ),
    Mutant(
        _KERNEL,
        "one of several cases is all of them",
        "said = z3.Or(claims) if inference.cases else conjunction(claims)",
        "said = conjunction(claims)",
        _CASES,
    ),
    Mutant(
        _KERNEL,
        "a split claims its first case",
        "[link.said for link in given], claims, cases=True",
        "[link.said for link in given], claims[:1], cases=True",
        _CASES,
    ),
    Mutant(
        _KERNEL,
        "a split is not proved",
        '        self._infer("cases", statement, [Link(z3.Or(claims))], given, terms)\n',
        "",
        _CASES,
    ),
    Mutant(
        _KERNEL,
        "the last value is no case",
        "for value in range(1 << bits)]",
        "for value in range((1 << bits) - 1)]",
        _VALUES,
    ),
    Mutant(
        _KERNEL,
        "the first value is no case",
        "for value in range(1 << bits)]",
        "for value in range(1, 1 << bits)]",
        _VALUES,
    ),
    Mutant(
        _KERNEL,
        "a lemma is of the first of its values",
        "        for pairs in values:\n",
        "        for pairs in values[:1]:\n",
        _VALUES,
    ),
    Mutant(
        _KERNEL,
        "all terms are cut to one constant",
        "wanted = [_constant(n, term) for n, term in enumerate(free.values(), len(pairs))]",
        "wanted = [_constant(0, term) for term in free.values()]",
        _CUT,
    ),
    Mutant(
        _KERNEL,
        "what is cut is left in",
        "        return z3.substitute(goal, *pairs.values()) if pairs else goal, cut",
        "        return goal, cut",
        _CUT,
    ),
    Mutant(
        _KERNEL,
        "a claim may bring along what it does not say",
        "return conjunction([self.claim, *(term == value for term, value in self.defined)])",
        "return self.claim",
        _DEFINED,
    ),
    Mutant(
        _KERNEL,
        "what is assumed may determine terms",
        "        if link.defined:\n",
        "        if False:\n",
        _DEFINED,
    ),
    Mutant(
        _KERNEL,
        "what is assumed is not a premise of the theorem",
        "    premises = [step for step, what in steps if what] + [step for step, what in steps if not what]\n",
        "    premises = [step for step, what in steps if not what]\n",
        _FOLLOWS,
    ),
    Mutant(
        _KERNEL,
        "the conclusion is the last claim, whatever is said",
        "        claim = conclusion.said if isinstance(conclusion, Link) else conclusion\n",
        "        claim = self.inferences[-1].claims[0]\n",
        seen("test_the_conclusion_is_what_is_said"),
    ),
    Mutant(
        _KERNEL,
        "the conclusion is the first claim",
        "return z3.Implies(conjunction(premises), said(conclusion))",
        "return z3.Implies(conjunction(premises), z3.Bool('p0'))",
        seen("test_the_conclusion_is_what_is_said", "test_what_is_proved_is_true"),
    ),
    Mutant(
        _KERNEL,
        "two conclusions change places",
        "self.composition, self.conclusion = self._add(lemma, text), claim",
        "self.composition, self.conclusion = self.composition or self._add(lemma, text), claim",
        _LAST,
    ),
    Mutant(
        _KERNEL,
        "the conclusion is not proved",
        "    return [*(lemma for lemma in theorem.lemmas.values() if lemma is not last), last]",
        "    return [lemma for lemma in theorem.lemmas.values() if lemma is not last]",
        _NEEDED,
    ),
    Mutant(
        _KERNEL,
        "the conclusion is all that is proved",
        "    return [*(lemma for lemma in theorem.lemmas.values() if lemma is not last), last]",
        "    return [last]",
        _CUT,
    ),
    Mutant(
        _KERNEL,
        "a theorem needs no conclusion",
        '        raise ArgumentError("a theorem without a conclusion proves nothing")',
        "        return [*theorem.lemmas.values()]",
        seen("test_without_a_conclusion_there_is_no_proof"),
    ),
    Mutant(
        _KERNEL,
        "what is not settled counts as proved",
        '    if outcome.verdict != "unsat":\n        asker.failed',
        '    if outcome.verdict == "sat":\n        asker.failed',
        _SETTLED,
    ),
    Mutant(
        _KERNEL,
        "lemmas are known by their statement",
        "        refuted = lemma.refuted\n        if refuted.get_id() not in self._written:\n"
        "            self._written[refuted.get_id()] = refuted, smtlib([refuted])\n"
        "        return self._written[refuted.get_id()][1]\n",
        "        refuted, key = lemma.refuted, hash(lemma.statement)\n        if key not in self._written:\n"
        "            self._written[key] = refuted, smtlib([refuted])\n        return self._written[key][1]\n",
        seen("test_lemmas_of_one_statement_are_two"),
    ),
    Mutant(_KERNEL, "or is and", "    z3.Z3_OP_OR: z3.Or,\n", "    z3.Z3_OP_OR: z3.And,\n", _WORDS),
    Mutant(
        _KERNEL, "not is nothing", "    z3.Z3_OP_NOT: z3.Not,\n", "    z3.Z3_OP_NOT: lambda x: x,\n", _WORDS
    ),
    Mutant(
        _KERNEL,
        "implies goes the other way",
        "    z3.Z3_OP_IMPLIES: z3.Implies,\n",
        "    z3.Z3_OP_IMPLIES: lambda x, y: z3.Implies(y, x),\n",
        _WORDS,
    ),
    Mutant(
        _KERNEL,
        "a proof is gathered of some of its lemmas",
        "    if any(each not in by_digest for each in theorem.lemmas):\n        return None\n",
        "    theorem = Digests(tuple(each for each in theorem.lemmas if each in by_digest), theorem.rules, key=_KEY)\n",
        _GATHERED,
    ),
    Mutant(
        _KERNEL,
        "of two proofs the first one's conclusion is the last",
        "    return Proof((*before.values(), *proofs[-1].obligations), tuple(rules), key=_KEY)",
        "    return Proof((*proofs[-1].obligations, *before.values()), tuple(rules), key=_KEY)",
        _TOGETHER,
    ),
    Mutant(
        _KERNEL,
        "rules are forgotten",
        "    rules = dict.fromkeys(rule for proof in proofs for rule in proof.rules)\n",
        "    rules = dict.fromkeys(rule for proof in proofs[:0] for rule in proof.rules)\n",
        _TOGETHER,
    ),
    Mutant(
        _KERNEL,
        "nothing proves anything",
        '    if not obligations:\n        raise ArgumentError("nothing was proved")\n',
        "",
        _KEYS,
    ),
    Mutant(
        _ANSWERS,
        "anybody makes a proof",
        '        if key is not _KEYS["mmaformal.proof.kernel"]:\n',
        "        if False:\n",
        _KEYS,
    ),
    Mutant(
        _ANSWERS,
        "anybody has the kernel's key",
        "    if module not in _KEYS:\n",
        '    if not _KEYS.get(module, _KEYS["mmaformal.proof.kernel"]):\n',
        _KEYS,
    ),
    Mutant(
        _CLAIMS,
        "a claim's premises are forgotten",
        "            self._inferences.append(Inference(using, (claim,)))\n",
        "            self._inferences.append(Inference((), (claim,)))\n",
        _ONCE,
    ),
    Mutant(
        _CLAIMS,
        "a claim is noted, not proved",
        "            self._prove_some_way(name, statement, claim, using, hint)\n",
        "",
        _ONE,
    ),
    Mutant(
        _ASKING,
        "what is cut of a claim is left in",
        "    return (z3.substitute(goal, *cut) if cut else goal), cut",
        "    return goal, cut",
        _ONCE,
    ),
    Mutant(
        _ASKING,
        "claims are cut to one constant",
        'z3.Const(f"cut{i}", term.sort())',
        'z3.Const("cut", term.sort())',
        seen("test_one_claim_from_another", "test_what_claims_give_is_true"),
    ),
    Mutant(
        _CLAIMS,
        "the conclusion of claims is not proved",
        "            self._settle(lemmas_of(self)[-1:])\n",
        "            pass\n",
        _ONCE,
    ),
    Mutant(
        _LINKS,
        "lanes of another trace are as good",
        "        if any(node.tracer is not self._tracer for node in nodes):\n",
        "        if False:\n",
        _LANES,
    ),
    Mutant(
        _LINKS,
        "the rules of lanes are not proved",
        '            self._add(Lemma("64-bit lanes", text, z3.Not(rule.claim), rule.hard))\n',
        "            pass\n",
        _LANES,
    ),
    Mutant(
        _CHAINS,
        "a loop is followed for two steps",
        "    same = all(_alike(shape, wanted[min(i, 1)]) for i, shape in enumerate(shapes))\n",
        "    same = all(_alike(shape, wanted[i]) for i, shape in zip(range(2), shapes, strict=False))\n",
        loops("test_a_loop_that_goes_another_way_later_is_noticed"),
    ),
    Mutant(
        _CHAINS,
        "steps are not counted",
        "    if len(loop.calls) != steps or not same or not ends:\n",
        "    if not same or (loop.calls and end.result is None):\n",
        loops("test_a_loop_that_goes_another_way_later_is_noticed"),
    ),
    Mutant(
        _CHAINS,
        "a step may look at the length of its chain",
        "    if not one.eq(other):\n",
        "    if False:\n",
        loops("test_a_step_that_looks_at_the_length_of_the_chain_is_noticed"),
    ),
    # ---- proofs of what is not so, by a mistake
    Mutant(
        _ASKING,
        "of several claims one or the other is proved",
        "    return z3.And(*premises, z3.Not(claim))",
        "    return z3.And(*premises, *map(z3.Not, claims))",
        holes("test_the_opposite_of_claims_is_that_one_of_them_is_false"),
    ),
    Mutant(
        _ASKING,
        "a claim may have the constant in the place of a term",
        "apart(wanted, [goal])",
        "wanted",
        holes("test_an_askers_cuts_are_fresh"),
    ),
    Mutant(
        _KERNEL,
        "a lemma may have the constant in the place of a term",
        "apart(wanted, [goal, *determined])",
        "wanted",
        holes("test_what_is_cut_is_no_constant_of_the_claim"),
    ),
    Mutant(
        _KERNEL,
        "what determines a term may have the constant in its place",
        "apart(wanted, [goal, *determined])",
        "apart(wanted, [goal])",
        holes("test_what_determines_a_term_is_not_captured"),
    ),
    Mutant(
        _SCRIPT,
        "two things of a script have one name",
        "    if bare in names:\n",
        "    if False:\n",
        holes("test_a_script_has_one_meaning_for_each_name"),
    ),
    Mutant(
        _KERNEL,
        "an assumption needs no words",
        "        if not what.strip():\n",
        "        if False:\n",
        holes("test_what_is_assumed_is_in_the_text"),
    ),
    Mutant(
        _KERNEL,
        "a theorem without a trace takes its lanes",
        "        if any(link.lanes or link.flags for link in links):\n",
        "        if False:\n",
        holes("test_the_range_of_a_lane_is_a_premise"),
    ),
    Mutant(
        _LINKS,
        "a trace without rules has ranges",
        "        if not tracer.strict:\n",
        "        if False:\n",
        holes("test_the_range_of_a_lane_is_a_premise"),
    ),
    Mutant(
        _CLAIMS,
        "what was derived is proved later, or forgotten",
        "            self._settle(lemmas)\n",
        "            pass\n",
        holes("test_a_lemma_that_is_not_proved_leaves_those_that_are_needed"),
    ),
    Mutant(
        _KERNEL,
        "nothing is to be proved, and is",
        "    if not theorems:\n",
        "    if False:\n",
        holes("test_of_nothing_there_is_no_proof"),
        "proofs of nothing are not put together either",
    ),
    Mutant(
        _ANSWERS,
        "anybody makes an obligation",
        '        if key is not _KEYS["mmaformal.solver.asking"]:\n',
        "        if False:\n",
        holes("test_only_the_asker_makes_an_obligation"),
    ),
    Mutant(
        _ANSWERS,
        "a proof may be made of anything",
        "        if not self.obligations or not all(isinstance(each, Obligation) for each in self.obligations):\n",
        "        if False:\n",
        holes("test_a_proof_is_made_of_obligations"),
    ),
    Mutant(
        _ASKING,
        "any answer proves something",
        '    if outcome.verdict != "unsat":\n',
        "    if False:\n",
        holes("test_only_the_asker_makes_an_obligation"),
    ),
    Mutant(
        _KERNEL,
        "a lemma has the words of whoever asked first",
        "        return restated(known, name, lemma.statement, whole=False)",
        "        return known",
        holes("test_a_lemma_is_told_in_its_own_words"),
    ),
    Mutant(
        _KERNEL,
        "a theorem may be about nothing",
        "        cache.demand_premises(asker, theorem)\n",
        "",
        holes("test_a_theorem_is_about_something"),
    ),
    Mutant(
        _KERNEL,
        "an implication may be about nothing",
        "        if not z3.is_true(self._given):\n",
        "        if False:\n",
        holes("test_the_premise_of_an_implication_is_one"),
    ),
    Mutant(
        _ASKING,
        "values that meet premises are not put into them",
        "            if z3.is_false(z3.simplify(z3.substitute(simplified, *pairs) if pairs else simplified)):\n",
        "            if False:\n",
        holes("test_values_of_premises_are_put_into_them"),
    ),
    Mutant(
        _RULES,
        "a relation may have the rule's own constants",
        '        self._look_for_own("the relation", said, self.counted)\n',
        "",
        ruled("test_zero_is_not_three_by_a_relation_of_the_rules_own_constants"),
    ),
    Mutant(
        _RULES,
        "a relation may be another one each time",
        "        if not moved.eq(again):\n",
        "        if False:\n",
        ruled("test_a_rule_looks_at_its_side_conditions"),
    ),
    Mutant(
        _RULES,
        "what is given may be about the number",
        '        self._look_for_own("what is given", self.given, self.counted)\n',
        "",
        ruled("test_a_rule_looks_at_its_side_conditions"),
    ),
    Mutant(
        _RULES,
        "whoever comes makes a conclusion",
        "        if type(step) not in (Instance, Successor, Ascent):\n",
        "        if False:\n",
        ruled("test_a_rule_makes_its_own_conclusion"),
    ),
    Mutant(
        _RULES,
        "a theorem may be assumed",
        """        raise RuleError(f"a theorem has no premises: claim what follows if {what} as an implication")\n""",
        "        return super().assume(what, link)\n",
        ruled("test_a_theorem_has_no_premises"),
    ),
    Mutant(
        _KERNEL,
        "a claim that is told twice has two names",
        "        if claim.get_id() not in self._of:  # one that is told twice has one name\n",
        "        if True:\n",
        holes("test_a_claim_that_is_told_twice_has_one_name"),
    ),
    Mutant(
        _KERNEL,
        "a claim of another context is taken for that of its number",
        "        demand(claim.ctx is z3.main_ctx(), ",
        "        demand(True, ",
        holes("test_terms_of_another_context_are_not_taken_for_those_of_their_ids"),
    ),
    Mutant(
        _TERMS,
        "a question may be of another context",
        "    if any(root.ctx is not z3.main_ctx() for root in roots):\n",
        "    if False:\n",
        holes("test_terms_of_another_context_are_not_taken_for_those_of_their_ids"),
    ),
    Mutant(
        _TERMS,
        "what is under a quantifier is overlooked",
        '    if kind != z3.Z3_APP_AST:\n        raise ValueError("a quantifier in a claim")\n',
        "    if kind != z3.Z3_APP_AST:\n        return []\n",
        holes("test_constants_under_a_quantifier_are_not_overlooked"),
    ),
    Mutant(
        _SCRIPT,
        "a constructor is a constant of its name",
        "    if kind not in _VALUES:  # a constructor, which may be called as a constant is\n"
        '        raise ValueError(f"neither a constant nor a value: {name}")\n'
        "    return _VALUES[kind], False\n",
        "    return _VALUES.get(kind, name), False\n",
        holes("test_a_constructor_is_no_constant_of_its_name"),
    ),
    Mutant(
        _KERNEL,
        "what is given inside an alternative is overlooked",
        "each.arg(0) if z3.is_not(each) else _about(each)",
        "each.arg(0) if z3.is_not(each) else z3.BoolVal(True)",
        holes("test_premises_inside_a_conclusion_are_met"),
    ),
    Mutant(
        _LINKS,
        "a lane has the range that anybody says",
        "        self._tracer.own(*nodes)\n",
        "        pass\n",
        holes("test_the_range_of_a_lane_is_its_tracers"),
    ),
    Mutant(
        _TRACES,
        "lanes are computed of any lanes",
        "            if self.strict and isinstance(node, Lane) and not self._has_made(node):\n",
        "            if False:\n",
        holes("test_the_range_of_a_lane_is_its_tracers"),
    ),
    Mutant(
        _TRACES,
        "lanes that may wrap have ranges",
        "        if self.strict:\n            self._made[lane]",
        "        if True:\n            self._made[lane]",
        holes("test_what_may_wrap_has_no_range"),
    ),
    Mutant(
        _ASKING,
        "an answer is to any script",
        '    if outcome.asked not in ("", digest(script)):\n',
        "    if False:\n",
        holes("test_an_answer_is_to_the_script_that_was_asked"),
    ),
    Mutant(
        _KERNEL,
        "anybody makes the digests of a theorem",
        "        if key is not _KEY:\n",
        "        if False:\n",
        holes("test_what_is_gathered_is_a_theorem"),
    ),
    Mutant(
        _KERNEL,
        "what is gathered may have premises",
        "    demand(not theorem.premises[0], ",
        "    demand(True, ",
        holes("test_what_is_gathered_is_a_theorem"),
    ),
    Mutant(
        _ANSWERS,
        "a subclass of a proof is one",
        '        raise TypeError("proofs have no subclasses, which anybody could make")\n',
        "        pass\n",
        holes("test_what_is_proved_has_no_subclasses"),
    ),
    Mutant(
        _ANSWERS,
        "a subclass of an obligation is one",
        '        raise TypeError("obligations have no subclasses, which anybody could make")\n',
        "        pass\n",
        holes("test_what_is_proved_has_no_subclasses"),
    ),
)
