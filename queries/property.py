"""What every property is: a name, a statement about all inputs, and a function that settles it for an instruction.

A file of this folder that states a property has a `PROPERTY` and ends with `main = PROPERTY.main`; `properties` lists
them all.  An answer is `Holds` with a proof, `Fails` with a witness that both encodings reproduce, or `Unknown`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmaformal.architectures import ARCHITECTURES
from mmaformal.instruction import Instruction
from mmaformal.queries.lemmas import Relay
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker

STATUS = {Holds: 0, Fails: 1, Unknown: 3}  #: exit codes of a command


@dataclass(frozen=True)
class Property:
    """A statement about all inputs of an instruction."""

    name: str  #: as in `mmaformal prove NAME ARCH INSTRUCTION`: words with hyphens
    statement: str  #: one sentence, for a person; ends without a full stop
    settle: Callable[[Instruction, Asker], Answer]

    def prove(
        self, instruction: Instruction, *, timeout: float = 120.0, backends: Sequence[str] | None = None
    ) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds.

        Raises NoSolverError if no solver of `backends` is installed, WitnessError if a witness does not hold when
        both encodings re-run it.
        """
        with Relay(backends) as portfolio:
            return self.settle(instruction, Asker(portfolio, timeout))

    def main(self, argv: Sequence[str] | None = None) -> int:
        """`python -m mmaformal.queries.order_independence hopper HMMA.16816.F32`.

        Returns 0 for `Holds`, 1 for `Fails`, 3 for `Unknown`.
        """
        parser = argparse.ArgumentParser(prog=self.name, description=self.statement)
        parser.add_argument("arch", metavar="ARCH")
        parser.add_argument("name", metavar="INSTRUCTION")
        parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds")
        parser.add_argument("--json", action="store_true", help="print JSON")
        args = parser.parse_args(argv)
        answer = self.prove(ARCHITECTURES[args.arch][args.name], timeout=args.timeout)
        print(json.dumps(answer.to_json(), indent=2) if args.json else answer)
        return next(code for kind, code in STATUS.items() if isinstance(answer, kind))
