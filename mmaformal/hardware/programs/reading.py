"""A program as a design: loaded, given symbolic operands, and run; what it returns is d.

`file.py:function`, or `package.module:expression`; the expression is evaluated in the module, and is called.  What it
is given is said by its parameters: named a, b, c (and scales) it takes K codes or numbers each and one c, and returns
one d; named A, B, C it takes matrices, and d[0][0] is read.  A parameter annotated as a tensor is one of torch, as an
array one of NumPy, with codes unless the annotation names a floating-point type; else codes are Python's integers.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Inputs, Rows, symbolic_inputs
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format
from mmaformal.hardware.module import HardwareError, Module, with_codes
from mmaformal.hardware.programs import operations  # noqa: F401  (fills the table)
from mmaformal.hardware.programs.context import ReadingState, reading
from mmaformal.hardware.programs.elements import of_code
from mmaformal.hardware.programs.kinds import INT, KINDS, NUMPY, PYTHON, TORCH, Kind, Library, torch
from mmaformal.hardware.programs.paths import explored, exploring
from mmaformal.hardware.programs.refusal import ProgramError
from mmaformal.hardware.programs.traced import Traced, merged, operate
from mmaformal.hardware.programs.whole import MAXIMA
from mmaformal.hardware.rebuild import constants_in
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

#: Rows and columns of the matrices that a program of matrices is given.
_SIDE = 2
_FLOATS = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3fnuz": "float8_e4m3fnuz",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "float8_e4m3fn",
}
_OPERANDS = ("a", "b", "c", "scale_a", "scale_b")


@dataclass(frozen=True, repr=False)
class ProgramDesign(ShortRepr):
    """What a reader makes of a program: a module over an instruction's codes, and the program itself on rows.

    Any reader of programs returns one: `module` has the one output d, over the constants of `symbolic_inputs`; `run`
    gives the program's own d for rows of codes, and is what the module is compared with before anything is proved.
    """

    module: Module | None  #: None where it was refused
    why: str  #: that it was refused, and where
    told: tuple[str, ...]
    run: Callable[[Rows], NDArray[np.uint64]]


@dataclass(frozen=True)
class Slot:
    """How an operand is given: the library, the type, bits that its codes are shifted by, codes in each value."""

    library: Library
    kind: Kind
    shift: int = 0
    packed: int = 1


@dataclass
class Program:
    """A function of operands, and how it takes them."""

    name: str
    function: Callable[..., Any]
    path: Path
    slots: dict[str, Slot]
    matrices: bool
    modules: list[ModuleType] = field(default_factory=list)


def load(text: str, spec: DotAdd, ports: Mapping[str, str]) -> Program:
    """The program that a text names.  Raises HardwareError where there is none, or it takes other operands."""
    source, _, expression = text.partition(":")
    if not expression:
        raise HardwareError(f"{text}: name the function too, as {source}:function")
    module = _module(source)
    try:
        function = eval(expression, vars(module))  # the user's own program
    except Exception as error:
        raise HardwareError(f"{text}: {type(error).__name__}: {error}") from None
    if not callable(function):
        raise HardwareError(f"{text} is no function")
    path = Path(str(module.__file__))
    parameters = list(inspect.signature(function).parameters.values())
    wanted = _OPERANDS[: 5 if spec.scale_format is not None else 3]
    if len(parameters) < len(wanted):
        raise HardwareError(f"{text} takes {counted(len(parameters), 'argument')}, not {', '.join(wanted)}")
    slots = {
        name: _slot(name, each, module, spec, ports.get(name))
        for name, each in zip(wanted, parameters, strict=False)
    }
    matrices = parameters[0].name.isupper()
    return Program(text, function, path, slots, matrices, _modules(module))


def _module(source: str) -> ModuleType:
    if not source.endswith(".py"):
        try:
            return importlib.import_module(source)
        except ImportError as error:
            raise HardwareError(f"{source} cannot be imported: {error}") from None
    path = Path(source).resolve()
    name = f"program_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or found is None or found.loader is None:
        raise HardwareError(f"{source}: no such file")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.parent))
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise HardwareError(f"{source}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def _modules(module: ModuleType) -> list[ModuleType]:
    """The modules of a program: its own, those of its package, and those beside its file that it imports."""
    root = module.__name__.partition(".")[0]
    folder = Path(str(module.__file__)).parent
    found = {module.__name__: module}
    for name, other in list(sys.modules.items()):
        file = getattr(other, "__file__", None)
        if not file or name.partition(".")[0] == "mmaformal":
            continue
        if (root and name.partition(".")[0] == root) or (
            root.startswith("program_") and Path(file).parent == folder and "site-packages" not in file
        ):
            found[name] = other
    return list(found.values())


def _slot(name: str, parameter: inspect.Parameter, module: ModuleType, spec: DotAdd, port: str | None) -> Slot:
    fmt = _format(name, spec)
    said = str(parameter.annotation if parameter.annotation is not inspect.Parameter.empty else "")
    library: Library
    if "Tensor" in said or "torch" in said:
        library = TORCH
    elif re.search(r"[nN][dD][aA]rray|np\.|numpy", said):
        library = NUMPY
    elif said:
        library = PYTHON
    else:
        used = {getattr(x, "__name__", "") for x in vars(module).values() if isinstance(x, ModuleType)}
        library = TORCH if "torch" in used else NUMPY if "numpy" in used else PYTHON
    if port is not None:
        return _said_slot(name, port, library)
    word = 8 if fmt.storage_bits <= 8 else 16 if fmt.storage_bits <= 16 else 32 if fmt.storage_bits <= 32 else 64
    floating = _FLOATS.get(fmt.name) if "float" in said.lower() or library is TORCH else None
    if library is PYTHON:
        if floating is not None:
            raise HardwareError(f"{parameter.name} is annotated as {said}: give the program codes, as integers")
        return Slot(PYTHON, INT)
    return Slot(library, KINDS[floating or f"uint{word}"])


def _said_slot(name: str, port: str, library: Library) -> Slot:
    """`float16`, `uint8<<2`, `uint8x2`."""
    found = re.fullmatch(r"(\w+?)(?:<<(\d+)|x(\d+))?", port)
    if found is None or found[1] not in (*KINDS, "int"):
        raise HardwareError(f"--port {name}={port}: a type of the program's is needed, as float16, uint8<<2, uint8x2")
    kind = INT if found[1] == "int" else KINDS[found[1]]
    return Slot(PYTHON if kind == INT else library, kind, int(found[2] or 0), int(found[3] or 1))


def _format(name: str, spec: DotAdd) -> Format:
    if name.startswith("scale"):
        assert spec.scale_format is not None
        return spec.scale_format
    found = {"a": spec.a_format, "b": spec.b_format, "c": spec.c_format}[name]
    assert isinstance(found, Format)
    return found


# ---- running it on symbols ----------------------------------------------------------------------------------------------


def read_program(
    text: str, spec: DotAdd, ports: Mapping[str, str] | None = None, asker: Asker | None = None
) -> ProgramDesign:
    """The design that a program is.

    ports: types of operands that are not those of its annotations.  asker: proves facts of exponents; without it less
    is known of them.  Raises HardwareError for a program that cannot be loaded; one that cannot be followed has no
    module, and says why.
    """
    program = load(text, spec, dict(ports or {}))
    now = ReadingState(asker)
    MAXIMA.clear()

    def run(rows: Rows) -> NDArray[np.uint64]:
        return _run(program, spec, rows)

    try:
        with reading(now), _followed(program.modules):
            module, told = _read(program, spec, now)
    except ProgramError as error:
        return ProgramDesign(None, str(error), (), run)
    except RecursionError:
        return ProgramDesign(None, f"{program.path.name}: it calls itself too often", (), run)
    return ProgramDesign(module, "", tuple(told), run)


def _read(program: Program, spec: DotAdd, now: ReadingState) -> tuple[Module, list[str]]:
    inputs = symbolic_inputs(spec)
    sides = [inputs, *(_renamed(spec, f" of row {i}") for i in range(1, _SIDE if program.matrices else 1))]
    arguments = {name: _argument(name, slot, sides, spec, program.matrices) for name, slot in program.slots.items()}
    result = explored(lambda: program.function(*(x() for x in arguments.values())), merged)
    d = now.whole(_code_of_result(result, spec, program))
    others = {str(x) for side in sides[1:] for x in side.flat()}
    used = constants_in([d])
    if mixed := sorted(others & set(used)):
        raise ProgramError(f"{program.name}: d[0][0] depends on {mixed[0]}, of another row or column")
    undefined = {key: term for key, term in now.undefined.items() if str(term.decl().name()) in used}
    told = [f"read: {program.name}, {_said(program)}"]
    if now.facts:
        told.append(f"read with {counted(now.facts, 'fact')} of its exponents and special values, which are proved")
    if undefined:
        told.append("left open: " + ", ".join(sorted({key.partition(", use")[0] for key in undefined})))
    return Module(program.name, with_codes(inputs), {"d": d}, {}, undefined), told


def _said(program: Program) -> str:
    types = ", ".join(
        f"{name}: {slot.kind.name}{f' << {slot.shift}' if slot.shift else ''}{f', {slot.packed} codes each' if slot.packed > 1 else ''}"
        for name, slot in program.slots.items()
    )
    what = f"d[0][0] of {_SIDE} rows and columns, of which any other is any" if program.matrices else "d"
    return f"{what} ({types})"


def _renamed(spec: DotAdd, more: str) -> Inputs:
    inputs = symbolic_inputs(spec)

    def other(x: z3.BitVecRef) -> z3.BitVecRef:
        return z3.BitVec(f"{x}{more}", x.size())

    sides = (tuple(map(other, side)) for side in (inputs.a, inputs.b))
    scales = (tuple(map(other, side)) for side in (inputs.scale_a, inputs.scale_b))
    return Inputs(*sides, other(inputs.c), *scales)


def _argument(
    name: str, slot: Slot, sides: Sequence[Inputs], spec: DotAdd, matrices: bool
) -> Callable[[], Any]:
    """An operand as the program takes it, made anew for each way through it."""
    rows = [getattr(side, name) for side in sides]
    values = [_values([row] if name == "c" else list(row), slot) for row in rows]
    if slot.library is PYTHON and not matrices:
        scalars = [_scalar(v, slot) for v in values[0]]
        return (lambda: scalars[0]) if name == "c" else (lambda: list(scalars))
    if not matrices:
        data = np.array([*values[0], None], object)[:-1]
        data = data.reshape(()) if name == "c" else data
    elif name == "c":
        data = np.empty((len(rows), len(rows)), object)
        for i in range(len(rows)):
            for j in range(len(rows)):
                at = (i + j * len(rows)) % len(rows) if i != j else i
                data[i, j] = values[at][0]
        data[0, 0] = values[0][0]
    else:
        data = np.array([[*row, None] for row in values], object)[:, :-1]
        data = data.T if name in ("b", "scale_b") else data
    return lambda: Traced(data.copy(), slot.kind, slot.library)


def _scalar(value: Any, slot: Slot) -> Traced:
    made = np.empty((), object)
    made[()] = value
    return Traced(made, slot.kind, PYTHON, plain=True)


def _values(codes: Sequence[z3.BitVecRef], slot: Slot) -> list[Any]:
    """Codes as values of a slot's kind."""
    bits = codes[0].size()
    if slot.packed > 1:
        codes = [z3.Concat(*codes[i : i + slot.packed]) for i in range(0, len(codes), slot.packed)]
    elif slot.shift:
        codes = [z3.Concat(x, z3.BitVecVal(0, slot.shift)) for x in codes]
    width = slot.kind.bits or codes[0].size()
    if width < codes[0].size() or (slot.kind.is_float and width != codes[0].size() and bits != width - 1):
        raise HardwareError(f"codes of {bits} bits are no {slot.kind.name}")
    kind = slot.kind if slot.kind.bits is not None else Kind("int", "u")
    if kind.is_float:
        return [of_code(z3.ZeroExt(width - x.size(), x) if width > x.size() else x, kind) for x in codes]
    plain = Kind(kind.name, "u") if codes[0].size() < width else kind
    return [of_code(x, plain) for x in codes]


def _code_of_result(result: Any, spec: DotAdd, program: Program) -> z3.BitVecRef:
    fmt = spec.d_format
    value = operate("asarray", result)
    if not isinstance(value, Traced):
        raise ProgramError(f"{program.name}: the type of d depends on the inputs")
    value = value.checked()
    if value.mask is not None:
        raise ProgramError(f"{program.name}: d was taken with a mask")
    if program.matrices and value.data.ndim == 2:
        element = value.data[0, 0]
    elif value.data.size == 1:
        element = value.data.reshape(-1)[0]
    else:
        raise ProgramError(f"{program.name} returns {value.data.size} values, not one d")
    if value.kind.is_float:
        if value.kind.fmt is None or value.kind.fmt.storage_bits != fmt.storage_bits or value.plain and fmt.storage_bits != 64:
            raise ProgramError(f"{program.name} returns {value.kind.name}, where the model's d is {fmt.name}")
        found = element.to_code(value.kind.fmt)
        assert isinstance(found, z3.BitVecRef)
        return found
    if isinstance(element, z3.BoolRef) or (value.kind.bits or fmt.storage_bits) < fmt.storage_bits:
        raise ProgramError(f"{program.name} returns {value.kind.name}, where the model's d has {fmt.storage_bits} bits")
    if value.kind.bits != fmt.storage_bits and not (0 <= element.low and element.high < 1 << fmt.storage_bits):
        raise ProgramError(
            f"{program.name} returns integers of {element.low} to {element.high}, no codes of {fmt.storage_bits} bits: "
            f"mask them with & {(1 << fmt.storage_bits) - 1:#x}"
        )
    return element.term(fmt.storage_bits)


# ---- what it calls ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _followed(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Let each function of some modules put its ways together, and Python's `max`, `min` and `math` take values."""
    saved = [(module, dict(vars(module))) for module in modules]
    names = {module.__name__ for module in modules}
    made: dict[int, Callable[..., Any]] = {}
    for module, before in saved:
        for name, value in before.items():
            if isinstance(value, FunctionType) and value.__module__ in names:
                made.setdefault(id(value), exploring(value, merged))
                setattr(module, name, made[id(value)])
            elif isinstance(value, ModuleType) and value.__name__ == "math":
                setattr(module, name, _Math())
        for name, stand_in in _BUILTINS.items():
            if name not in before:
                setattr(module, name, stand_in)
    try:
        yield
    finally:
        for module, before in saved:
            for name in [name for name in vars(module) if name not in before]:
                delattr(module, name)
            for name, value in before.items():
                if vars(module).get(name) is not value:
                    setattr(module, name, value)


def _largest(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def of(*given: Any, **kwargs: Any) -> Any:
        every = list(given[0]) if len(given) == 1 else list(given)
        if kwargs or not any(isinstance(x, Traced) for x in every):
            return plain(every, **kwargs) if len(given) == 1 else plain(*given, **kwargs)
        made = every[0]
        for x in every[1:]:
            made = operate(name, made, x)
        return made

    return of


_BUILTINS: dict[str, Callable[..., Any]] = {"max": _largest("maximum", max), "min": _largest("minimum", min)}


class _Math:
    """Python's `math`, of values that depend on the inputs too."""

    _names = {"fabs": "abs", "floor": "floor_to_int", "trunc": "trunc_to_int"}

    def __getattr__(self, name: str) -> Any:
        import math

        plain = getattr(math, name)
        if not callable(plain):
            return plain

        def of(*given: Any) -> Any:
            if any(isinstance(x, Traced) for x in given):
                return operate(self._names.get(name, name), *given)
            return plain(*given)

        return of


# ---- running it as it is ------------------------------------------------------------------------------------------------


def _run(program: Program, spec: DotAdd, rows: Rows) -> NDArray[np.uint64]:
    """The program's own d for each row."""
    count = len(rows)
    found = np.zeros(count, np.uint64)
    for i in range(count):
        given = [i, (i + 1) % count] if program.matrices else [i]
        arguments = [
            _concrete(name, slot, [np.atleast_1d(getattr(rows.codes, name)[j] if name == "c" else _row(rows, name, j)) for j in given], spec, program.matrices)
            for name, slot in program.slots.items()
        ]
        try:
            result = program.function(*arguments)
        except Exception as error:
            raise HardwareError(f"{program.name} raises {type(error).__name__} on a row: {error}") from None
        found[i] = _concrete_code(result, spec, program)
    return found


def _row(rows: Rows, name: str, j: int) -> NDArray[Any]:
    return np.array([int(column[j]) for column in getattr(rows.codes, name)])


def _concrete(name: str, slot: Slot, sides: Sequence[NDArray[Any]], spec: DotAdd, matrices: bool) -> Any:
    bits = _format(name, spec).storage_bits
    every = []
    for side in sides:
        codes = [int(x) for x in side]
        if slot.packed > 1:
            codes = [
                sum(x << bits * (slot.packed - 1 - j) for j, x in enumerate(codes[i : i + slot.packed]))
                for i in range(0, len(codes), slot.packed)
            ]
        every.append([x << slot.shift for x in codes])
    if slot.library is PYTHON:
        return every[0][0] if name == "c" else every[0]
    word = np.dtype(f"u{(slot.kind.bits or 64) // 8}")
    if matrices and name == "c":
        data = np.array([[every[0][0], every[1][0]], [every[1][0], every[1][0]]], word)
    elif matrices:
        data = np.array(every, word)
        data = np.ascontiguousarray(data.T) if name in ("b", "scale_b") else data
    else:
        data = np.array(every[0][0] if name == "c" else every[0], word)
    if slot.library is NUMPY:
        return data.view(slot.library.dtype(slot.kind)) if slot.kind.letter != "u" else data[()] if name == "c" and not matrices else data
    signed = data if word.itemsize == 1 else data.view(f"i{word.itemsize}")
    return torch().from_numpy(np.ascontiguousarray(signed)).reshape(data.shape).view(slot.library.dtype(slot.kind))


def _concrete_code(result: Any, spec: DotAdd, program: Program) -> int:
    bits = spec.d_format.storage_bits
    if "torch" in sys.modules and isinstance(result, torch().Tensor):
        value = result[0, 0] if program.matrices and result.ndim == 2 else result.reshape(-1)[0]
        signed = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[value.element_size()]
        return int(value.view(getattr(torch(), signed)).item()) % (1 << bits)
    if isinstance(result, np.ndarray | np.generic):
        value = np.asarray(result)
        value = value[0, 0] if program.matrices and value.ndim == 2 else value.reshape(-1)[0]
        return int(np.asarray(value).view(f"u{value.dtype.itemsize}")) % (1 << bits)
    if isinstance(result, float):
        return int(np.float64(result).view(np.uint64))
    return int(result) % (1 << bits)


__all__ = ["Program", "ProgramDesign", "Slot", "load", "read_program"]
