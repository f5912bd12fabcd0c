"""Every property there is, by name, and `mmaformal.prove`."""

from __future__ import annotations

import difflib

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.display import Tabular, html_table
from mmaformal.instruction import Instruction
from mmaformal.queries import (
    accumulator_width,
    commutativity,
    conformance,
    error_bound,
    exactness,
    freedom,
    lossless_width,
    monotonicity,
    order_independence,
    output_range,
    power_of_two_scaling,
    rounding,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.property import Property
from mmaformal.renamed import keywords
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import first_found, watching
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver

_ALL: tuple[Property, ...] = (
    order_independence.PROPERTY,
    order_independence.ACROSS,
    commutativity.PROPERTY,
    sign_symmetry.PROPERTY,
    zero_padding.PROPERTY,
    power_of_two_scaling.PROPERTY,
    output_range.NO_NAN,
    output_range.NEVER_MINUS_ZERO,
    output_range.EVERY_NUMBER,
    accumulator_width.PROPERTY,
    monotonicity.ADDEND,
    monotonicity.PRODUCT,
    exactness.PROPERTY,
    error_bound.PROPERTY,
    lossless_width.PROPERTY,
    rounding.CORRECT,
    rounding.FAITHFUL,
    rounding.STEP,
)


class Properties(dict[str, Property], Tabular):
    """Properties by name."""

    def rows(self) -> list[dict[str, object]]:
        """A dict of name and statement for each."""
        return [{"property": each.name, "statement": each.statement} for each in self.values()]

    def __repr__(self) -> str:
        return f"<{len(self)} properties: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return html_table(("property", "statement"), [list(row.values()) for row in self.rows()])


PROPERTIES = Properties({each.name: each for each in _ALL})

#: Those that are asked of the units that one standard is about, and are not in the tables of all.
OF_A_STANDARD = Properties({each.name: each for each in (conformance.PROPERTY, freedom.PROPERTY)})


def property_named(name: str) -> Property:
    """A property by its name, in any case and with `_` for `-`.

    Raises ValueError for a name that there is not; the message has the nearest ones.  TypeError for what is no name.
    """
    if not isinstance(name, str):
        raise TypeError(f'the property comes first, by its name: prove("sign-symmetry", …), not {name!r}')
    spelled = name.strip().lower().replace("_", "-").replace(" ", "-")
    every = {**PROPERTIES, **OF_A_STANDARD}
    if spelled in every:
        return every[spelled]
    nearest = difflib.get_close_matches(spelled, every, n=3, cutoff=0.5) or list(PROPERTIES)
    raise ValueError(
        f"no property {name!r}; there {'is' if len(nearest) == 1 else 'are'} {', '.join(nearest)}"
    )


@keywords(backends="solver")
def prove(
    name: str | Property,
    instruction: Instruction | str,
    *,
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove a property of an instruction: `prove("order-independence", hopper["HMMA.16816.F32"])`.

    `PROPERTIES` has the names; an instruction may be named too, "hopper HMMA.16816.F32".  Returns `Holds` with a proof
    about all inputs, `Fails` with an input, or `Unknown` with the reason; `timeout` in seconds, `memory` in
    megabytes for each process of `solver` (default: z3 and Bitwuzla); `progress` is called with a line of text
    for each question that is asked; `cache`: whether, or in which file, what was proved is recorded, and looked up.

    Raises ValueError for a name that is no property's, TypeError for what is no instruction, and as `Property.prove`.
    """
    caller(progress)
    wanted = name if isinstance(name, Property) else property_named(name)
    with watching(progress, first_found(progress)):
        return wanted.prove(
            instruction_meant(instruction), timeout=timeout, memory=memory, solver=solver, cache=cache
        )
