"""Statements that have certificates: which question each is, and of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import Codes
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.queries.properties import property_named
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Answer

#: The property that stands for equality of both encodings.
EQUALITY = "equality"
#: A name for the smallest input on which two instructions differ, or for there being none.
DIFFERENCE = "difference"


@dataclass(frozen=True)
class Statement:
    """A question that is asked anew when a certificate is checked."""

    property: str  #: one of `prove`, `equality` of both encodings, or `difference` from another instruction
    architecture: str
    instruction: str
    against: str = ""  #: the other instruction, after its architecture
    known: Mapping[str, object] | None = None  #: the input on which they differ, as `Codes.to_json`

    def question(self) -> Callable[..., Answer]:
        """Return the question, which takes the keywords of `prove`.

        Raises KeyError as `instruction_meant`, and ValueError for a property that there is not.
        """
        if self.property == DIFFERENCE:
            architecture, _, name = self.against.partition(" ")
            both = partial(find_difference, self.architecture, architecture, self.instruction, name)
            return partial(both, known=None if self.known is None else Codes.from_json(self.known))
        prove = verify if self.property == EQUALITY else property_named(self.property).prove
        return partial(prove, self.meant())

    def meant(self) -> Instruction:
        """The instruction.  Raises KeyError as `instruction_meant`."""
        return instruction_meant(f"{self.architecture} {self.instruction}")

    def to_json(self) -> dict[str, object]:
        """Return its fields, but for those that are empty."""
        return {name: each for name, each in vars(self).items() if each}
