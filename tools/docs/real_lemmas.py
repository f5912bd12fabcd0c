"""List the lemmas about real numbers, which have no certificate: docs/certificates.md.

python tools/docs/real_lemmas.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from mmaformal.facts import product_bound
from mmaformal.proof.composition import Composing
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.studies.emulation import sums
from mmaformal.studies.narrow_range.theorems import THEOREMS

#: Questions about theorems of real numbers, with these.  Those of a program of words have one more for each program
#: (`WordProducts`), whose lemmas are linear.
QUESTIONS: dict[str, tuple[Callable[[Composing], None], ...]] = {
    "`bound`": (
        product_bound.prove_growth,
        product_bound.prove_join,
        product_bound.prove_beside,
        product_bound.prove_rescaled,
        product_bound.prove_narrowed,
    ),
    "`max-difference` of two products": (product_bound.prove_apart,),
    "`bound` of a program of words": (
        sums.prove_chain_of_sums,
        sums.prove_outside,
        sums.prove_together,
        partial(sums.prove_scaling, shift=11),
    ),
    "the study of narrow ranges": tuple(prove for _, prove in THEOREMS.values()),
}


def real_lemmas(prove: Callable[[Composing], None]) -> list[str]:
    """Return the lemmas of a theorem that are of the logic QF_NRA, in words.  Raises NotProvedError."""
    with LazyPortfolio() as portfolio:
        proving = Composing(Asker(portfolio, 300.0))
        prove(proving)
        return [
            each.statement
            for each in proving.proof().obligations
            if each.script.startswith("(set-logic QF_NRA)")
        ]


def main() -> int:
    print("| asked by | lemmas | what they say |\n|---|---:|---|")
    for question, theorems in QUESTIONS.items():
        found = [lemma for prove in theorems for lemma in real_lemmas(prove)]
        words = "; ".join(dict.fromkeys(found)).replace("|", "\\|")
        print(f"| {question} | {len(found)} | {words} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
