"""A function in Python, NumPy or torch as a design: what it gives as terms over the codes of an instruction's operands.

    print(signoff("emulator.py:dot", volta["HMMA.884.F32.F32"]))

The function is run on symbolic values (`mmaformal.hardware.tracing`).  That the terms are the function's is checked
where the design is used: the function itself is run beside them.
"""

from __future__ import annotations

from mmaformal.checked import Progress
from mmaformal.display import LastingLine
from mmaformal.hardware.designs import Driven, Wired
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.ports import Place, PortMap, Wiring
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.tracing.reading import read_traced
from mmaformal.hardware.undefined import ProgramBehaviour
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session
from mmaformal.spec import DotAdd

#: Seconds for all facts of exponents that are proved while a program is read.
_READING = 600.0
#: Random rows that a program is run on before it is said to be right.
_ROWS = 1000


def read_program(
    source: Sources, spec: DotAdd, said: PortMap, timeout: float | None, progress: Progress | None
) -> Wired:
    """A function as a design over the codes of `symbolic_inputs`; `progress` is told how it takes them.

    Raises HardwareError for a program that cannot be loaded, or not be followed, with its line.
    """
    if said.ties or source.defines or source.parameters or source.includes:
        raise HardwareError("of a program in Python --port alone is said: leave out --tie, -D, -G and -I")
    with session() as portfolio:
        asker = Asker(portfolio, _READING if timeout is None else timeout)
        found = read_traced(f"{source.files[0]}:{source.top}", spec, said.ports, asker)
    for line in found.told:
        (progress or (lambda _: None))(LastingLine(line))
    behaviour = ProgramBehaviour(found.module, found.run, f"{found.module.name} as it is run", rows=_ROWS)
    driven = Driven(Wiring((), Place("d"), (), ()), {}, {}, "", True, 0, 0)
    return Wired(found.module, found.told, driven, behaviour)
