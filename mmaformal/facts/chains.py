"""Proof that a long chain is its step, over and over: what is proved of a short one holds of it.

Each encoding of a chain is a loop over its steps.  To trace every step of a long one takes too long, and would show the
same terms again.  So the loop is run on tokens, its step put in another's place that only notes what it is given: step
i has to get the i-th products, with their scales, and what step i − 1 gave, and the result has to be the last one's,
untouched.  And a step has to be the same terms in the long chain as in the short one.  Then what is proved of a short
chain, whose second step takes any accumulator, is proved of the long one, by induction over the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, ModuleType

import z3

from mmaformal.cases.encodings import InputLanes, trace
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings import executable, part, smt
from mmaformal.lanes import Tracer
from mmaformal.proof.kernel import ArgumentError
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, Parameters

#: A longer chain than this is not followed: its tokens alone would take minutes.
MOST_STEPS = 1 << 16


@dataclass(frozen=True, eq=False)
class _Code:
    """A code that a loop may only hand on."""

    side: str
    place: int


@dataclass(frozen=True)
class _Decoded:
    """A code that a loop has decoded."""

    code: _Code
    how: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class _Result:
    """A token for what a step gave."""

    number: int  #: of the step, from 0


@dataclass(frozen=True, eq=False)
class _Step:
    result: _Result
    steps: tuple[()] = ()  #: of lowered, those of its parts


class _Stages:
    """A record of stages that a loop may only hand on, decode codes with, and tell a code of c."""

    @staticmethod
    def decode(code: _Code, *how: object) -> _Decoded:
        return _Decoded(code, how)

    @staticmethod
    def code(name: str, inputs: object, made: object, fmt: object) -> object:
        return made


@dataclass
class _Loop:
    """A record of what the steps of one encoding's loop were given."""

    calls: list[tuple[object, ...]] = field(default_factory=list)

    def step(self, *given: object) -> _Step:
        self.calls.append(given)
        return _Step(_Result(len(self.calls) - 1))


def _module(encoding: ModuleType, spec: DotAdd) -> ModuleType:
    """Where an algorithm's loop and step are.  Raises ArgumentError if it has none of its own."""
    module = part(spec.parameters.algorithm, encoding.__name__.rpartition(".")[2])
    own = getattr(module, "dot_add", None)
    if not isinstance(own, FunctionType) or "step" not in set().union(*map(_names, _codes(own))):
        raise ArgumentError(f"the loop of {spec.parameters.algorithm} has no step that could be followed")
    assert isinstance(module, ModuleType)
    return module


def _codes(own: FunctionType) -> list[CodeType]:
    """Return the code of a loop, and of the step that it was made with, if it was."""
    held = [cell.cell_contents for cell in own.__closure__ or ()]
    return [each.__code__ for each in (own, *held) if isinstance(each, FunctionType)]


def _names(code: CodeType) -> set[str]:
    """Return the names that a function looks up, and those that the functions within it do."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _with(function: FunctionType, names: dict[str, object]) -> FunctionType:
    """Return a function that finds other things under these names, and so do those that it was made with."""
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    cells = [CellType(_with(each, names) if isinstance(each, FunctionType) else each) for each in held]
    own, code = function.__globals__ | names, function.__code__
    return FunctionType(code, own, function.__name__, function.__defaults__, tuple(cells))


def _follow(encoding: ModuleType, spec: DotAdd, c: object) -> tuple[_Loop, object]:
    """The loop of an encoding on tokens."""
    loop, own = _Loop(), _module(encoding, spec).dot_add
    run = _with(own, {"step": loop.step, "decode": _Stages.decode, "Stages": _Stages})
    sides = [[_Code(side, k) for k in range(spec.k)] for side in ("a", "b")]
    scales = [[_Code(side, k) for k in range(spec.scales)] for side in ("scale_a", "scale_b")]
    try:
        return loop, run(spec, *sides, c, *(scales if spec.scales else ()))
    except (AttributeError, TypeError) as error:  # a token was taken for a number
        raise ArgumentError(
            f"the loop of {spec.parameters.algorithm} computes between its steps: {error}"
        ) from None


def _shape(spec: DotAdd, number: int, given: object) -> object:
    """Return what a step was given, with places counted from its own first product."""
    first = number * spec.parameters.step_products
    if isinstance(given, _Code):
        start = first if given.side in "ab" else first // spec.scale_block
        return given.side, given.place - start
    if isinstance(given, _Decoded):
        return "decoded", _shape(spec, number, given.code), given.how
    if isinstance(given, _Stages):
        return "the stages"
    if isinstance(given, _Result):
        return "the result before" if given.number == number - 1 else given
    if isinstance(given, (list, tuple)):
        return tuple(_shape(spec, number, each) for each in given)
    return "the specification" if given is spec else given


def _check_loop(encoding: ModuleType, long: DotAdd, short: DotAdd, c: object) -> None:
    loop, end = _follow(encoding, long, c)
    other, _ = _follow(encoding, short, c)
    steps = long.k // long.parameters.step_products
    wanted = [_shape(short, i, call) for i, call in enumerate(other.calls)]
    shapes = (_shape(long, i, call) for i, call in enumerate(loop.calls))
    same = all(_alike(shape, wanted[min(i, 1)]) for i, shape in enumerate(shapes))
    last = getattr(end, "result", None)
    ends = isinstance(last, _Result) and last.number == steps - 1
    if len(loop.calls) != steps or not same or not ends:
        raise ArgumentError(
            f"a long chain of {long.parameters.algorithm} is not its steps, one after another"
        )


def _alike(x: object, y: object) -> bool:
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(_alike, x, y))
    x, y = (getattr(each, "term", each) for each in (x, y))  # a lane's
    if isinstance(x, z3.ExprRef) and isinstance(y, z3.ExprRef):
        return bool(x.eq(y))
    return x is y or (isinstance(x, (str, int, Parameters, Conversion)) and x == y)


def _check_step(encoding: ModuleType, long: DotAdd, short: DotAdd, codes: Inputs | InputLanes) -> None:
    """Check that a step is the same terms, whichever chain it is of; `codes` are inputs of the short one."""
    module, (loop, _) = _module(encoding, short), _follow(encoding, short, codes.c)

    def real(given: object, spec: DotAdd) -> object:
        """Return the value that a token stands for."""
        if isinstance(given, _Code):
            return getattr(codes, given.side)[given.place]
        if isinstance(given, _Decoded):
            decode = module.Stages().decode if hasattr(module, "Stages") else module.decode
            return decode(real(given.code, spec), *given.how)
        if isinstance(given, _Stages):
            return module.Stages()
        if isinstance(given, (list, tuple)):
            return type(given)(real(each, spec) for each in given)
        return spec if given is short else given

    results = [module.step(*(real(each, spec) for each in loop.calls[0])).result for spec in (long, short)]
    one, other = (getattr(x, "term", x) for x in results)
    if not one.eq(other):
        raise ArgumentError(f"a step of a long chain of {long.parameters.algorithm} is another one")


def check_order(spec: DotAdd) -> None:
    """Checks that both encodings give an algorithm its products in the order of the specification.

    Raises ArgumentError if one does not.
    """
    a, b = ([_Code(side, k) for k in range(spec.k)] for side in "ab")
    scales = [[_Code(side, k) for k in range(spec.scales)] for side in ("scale_a", "scale_b")]
    c = _Code("c", 0)
    wanted = [[side[k] for k in spec.taken] for side in (a, b)]
    for encoding in (smt, executable):
        given: list[tuple[DotAdd, list[_Code], list[_Code], object, *tuple[object, ...]]] = []
        algorithms = {spec.parameters.algorithm: lambda *x, given=given: given.append(x)}
        own = encoding.dot_add
        names = own.__globals__ | {"_ALGORITHMS": algorithms}
        run = FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
        try:
            run(spec, a, b, c, *scales)
        except (AttributeError, NameError, TypeError):  # it is another function, or computes with the codes
            given = []
        taken = [[*side] for side in given[0][1:3]] if len(given) == 1 else []
        if taken != wanted or given[0][0] != spec.in_order or given[0][3] is not c:
            raise ArgumentError(f"{encoding.__name__} does not take the products of {spec} in their order")


def follow(long: DotAdd, short: DotAdd) -> str:
    """The rule by which what is proved of both encodings of a short chain holds of a long one.

    Raises ArgumentError if a loop is more than its steps.
    """
    steps = long.k // long.parameters.step_products
    if steps > MOST_STEPS:
        raise ArgumentError(f"a chain of {steps} steps is too long to be followed: {MOST_STEPS} at most")
    check_order(long)
    long, short = long.in_order, short.in_order
    both = trace(short, symbolic_inputs(short), Tracer())
    for encoding, codes in ((smt, both.inputs), (executable, both.lanes)):
        _check_loop(encoding, long, short, codes.c)
        _check_step(encoding, long, short, codes)
    return (
        f"induction over steps: both encodings' loops were followed over all {steps} steps of the chain; each is the "
        "step that was proved, of the next products and the result before"
    )
