"""A program as a design: `file.py:function`, loaded, given symbolic operands, and run; what it returns is d.

The function takes a, b, c (and scale_a, scale_b) in this order: K codes or numbers each and one c, and returns one d.
Its annotations, or what its file imports, say whether operands are tensors of torch, arrays of NumPy, or Python's
integers; and whether those are numbers of a floating-point type or codes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.display import ShortRepr, counted
from mmaformal.hardware.module import HardwareError, Module, with_codes
from mmaformal.hardware.rebuild import constants_in
from mmaformal.hardware.tracing import shapes  # noqa: F401  (with operations it fills the table)
from mmaformal.hardware.tracing.context import ReadingState, reading
from mmaformal.hardware.tracing.elements import of_code
from mmaformal.hardware.tracing.kinds import INT, KINDS, NUMPY, PYTHON, TORCH, DType, Library
from mmaformal.hardware.tracing.loading import followed, plain_module
from mmaformal.hardware.tracing.refusal import REFUSED, ProgramError
from mmaformal.hardware.tracing.running import Slot, format_of, run_each, run_together
from mmaformal.hardware.tracing.traced import Traced, operate
from mmaformal.hardware.tracing.whole import KEPT, MAXIMA, Integer
from mmaformal.hardware.unread import UnreadProgram, UnreadProgramError, WrongUseError
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

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
class TracedProgram(ShortRepr):
    """A program as terms, and as it runs."""

    module: Module  #: with the one output d, over the constants of `symbolic_inputs`
    told: tuple[str, ...]
    run: Callable[[Rows], NDArray[np.uint64]]  #: the program's own d for rows


def read_traced(
    text: str, spec: DotAdd, ports: Mapping[str, str], asker: Asker | None = None
) -> TracedProgram:
    """The design that a program is.

    ports: types of operands that are not those of its annotations.  asker: proves facts of exponents; without it less
    is known of them.  Raises HardwareError for a program that cannot be loaded, UnreadProgramError for one that cannot
    be followed, with its line.
    """
    source, _, name = text.rpartition(":")
    path = Path(source).resolve()
    plain = plain_module(path)
    function = _function(plain, name, path)
    slots = _slots(function, plain, spec, ports)
    now = ReadingState(asker)
    for each in (MAXIMA, KEPT, REFUSED):
        each.clear()
    takes = f"{name} takes {', '.join(f'{each}: {slot}' for each, slot in slots.items())}"
    with reading(now):
        try:
            d = _followed(path, name, slots, spec, now)
        except WrongUseError:
            raise
        except (HardwareError, RecursionError) as error:
            why = str(error)
            if isinstance(error, RecursionError):
                why = f"{path.name}: {name} calls itself too often"
            raise UnreadProgramError(why, _as_it_runs(function, name, path, slots, spec, takes)) from None
    used = constants_in([d])
    undefined = {key: term for key, term in now.undefined.items() if str(term.decl().name()) in used}
    told = [takes]
    if now.facts:
        told.append(
            f"read with {counted(now.facts, 'fact')} of its exponents and special values, which are proved"
        )
    if undefined:
        told.append("left open: " + ", ".join(sorted({key.partition(", use")[0] for key in undefined})))
    made = Module(f"{name} of {path.name}", with_codes(symbolic_inputs(spec)), {"d": d}, {}, undefined)
    return TracedProgram(made, tuple(told), lambda rows: run_each(function, name, slots, spec, rows))


def _followed(
    path: Path, name: str, slots: Mapping[str, Slot], spec: DotAdd, now: ReadingState
) -> z3.BitVecRef:
    """The d of a program, followed.  Raises HardwareError as `read_traced` does, and RecursionError."""
    with followed(path) as (module, names):
        now.modules = names
        try:
            d = _d_of(_function(module, name, path), slots, spec, name)
        except ProgramError:
            raise REFUSED[0] if REFUSED else HardwareError(f"{name} cannot be followed") from None
        except (HardwareError, RecursionError):
            raise
        except Exception as error:
            raise HardwareError(f"{_line(error, path)}: {type(error).__name__}: {error}") from None
        if REFUSED:
            raise REFUSED[0]
        return now.whole(d)


def _as_it_runs(
    function: Callable[..., Any], name: str, path: Path, slots: Mapping[str, Slot], spec: DotAdd, takes: str
) -> UnreadProgram:
    """Return a program that is only run."""
    said = f"{name} of {path.name}"
    together = None
    if all(slot.library is not PYTHON for slot in slots.values()):

        def together(rows: Rows) -> NDArray[np.uint64] | None:
            return run_together(function, slots, spec, rows)

    return UnreadProgram(
        said,
        (takes,),
        f"{said} as it is run",
        lambda rows: run_each(function, name, slots, spec, rows, strict=True),
        together,
    )


def _function(module: ModuleType, name: str, path: Path) -> Callable[..., Any]:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        there = [
            x for x, y in vars(module).items() if inspect.isfunction(y) and y.__module__ == module.__name__
        ]
        names = ", ".join(x for x in there if not x.startswith("_"))
        raise HardwareError(f"there is no function {name} in {path.name}; there are {names or 'none'}")
    return found  # type: ignore[no-any-return]


def _line(error: Exception, path: Path) -> str:
    """Where in the program an exception came from: its file and line."""
    trace, found = error.__traceback__, path.name
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file == str(path) or str(path.parent) == str(Path(file).parent):
            found = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# ---- how it takes operands ----


def _slots(
    function: Callable[..., Any], module: ModuleType, spec: DotAdd, ports: Mapping[str, str]
) -> dict[str, Slot]:
    wanted = _OPERANDS[: 5 if spec.scale_format is not None else 3]
    parameters = [x for x in inspect.signature(function).parameters.values() if x.kind is not x.VAR_KEYWORD]
    needed = [x for x in parameters if x.default is x.empty]
    if len(parameters) < len(wanted) or len(needed) > len(wanted):
        many = counted(len(parameters), "argument")
        raise HardwareError(
            f"{function.__name__} takes {many}; the model has {len(wanted)}: {', '.join(wanted)}"
        )
    for name in ports:
        if name not in wanted:
            raise HardwareError(f"--port {name}: a program's operands are {', '.join(wanted)}")
    return {
        name: _slot(name, each, module, spec, ports.get(name))
        for name, each in zip(wanted, parameters, strict=False)
    }


def _slot(
    name: str, parameter: inspect.Parameter, module: ModuleType, spec: DotAdd, port: str | None
) -> Slot:
    fmt = format_of(name, spec)
    said = str(parameter.annotation if parameter.annotation is not inspect.Parameter.empty else "")
    used = {getattr(x, "__name__", "") for x in vars(module).values() if isinstance(x, ModuleType)}
    library: Library = PYTHON
    if "ensor" in said or "torch" in said or (not said and "torch" in used):
        library = TORCH
    elif re.search(r"[nN][dD][aA]rray|np\.|numpy", said) or (not said and "numpy" in used):
        library = NUMPY
    if port is not None:
        return _said_slot(name, port, library)
    if library is PYTHON:
        if "float" in said:
            raise HardwareError(
                f"{parameter.name} is annotated as {said}: a program in Python takes codes, as integers"
            )
        return Slot(PYTHON, INT)
    said_kind = next(
        (kind for kind in sorted(KINDS, key=len, reverse=True) if re.search(rf"\b{kind}\b", said)), None
    )
    bits = next(word for word in (8, 16, 32, 64) if fmt.storage_bits <= word)
    native = _FLOATS.get(fmt.name)
    if library is NUMPY and native not in ("float16", "float32", "float64"):
        native = None
    return Slot(library, KINDS[said_kind or native or f"uint{bits}"])


def _said_slot(name: str, port: str, library: Library) -> Slot:
    """`float16`, `uint8<<2`, `uint8x2`."""
    found = re.fullmatch(r"(\w+?)(?:<<(\d+)|x(\d+))?", port)
    if found is None or found[1] not in (*KINDS, "int"):
        raise HardwareError(
            f"--port {name}={port}: a type of the program's is needed, as float16, uint8<<2, uint8x2"
        )
    kind = INT if found[1] == "int" else KINDS[found[1]]
    return Slot(PYTHON if kind == INT else library, kind, int(found[2] or 0), int(found[3] or 1))


# ---- running it on symbols ----


def _d_of(function: Callable[..., Any], slots: Mapping[str, Slot], spec: DotAdd, name: str) -> z3.BitVecRef:
    inputs = symbolic_inputs(spec)
    arguments = []
    for operand, slot in slots.items():
        given = getattr(inputs, operand)
        values = _values([given] if operand == "c" else list(given), slot)
        if slot.library is PYTHON:
            scalars = [Traced(_box(x), slot.kind, PYTHON, plain=True) for x in values]
            arguments.append(scalars[0] if operand == "c" else scalars)
        else:
            data = np.empty(len(values), object)
            data[:] = values
            arguments.append(Traced(data.reshape(()) if operand == "c" else data, slot.kind, slot.library))
    return _code_of_result(function(*arguments), spec, name)


def _box(value: Any) -> NDArray[np.object_]:
    made = np.empty((), object)
    made[()] = value
    return made


def _values(codes: Sequence[z3.BitVecRef], slot: Slot) -> list[Any]:
    """Codes as values of a slot's kind."""
    if slot.packed > 1:
        codes = [z3.Concat(*codes[i : i + slot.packed]) for i in range(0, len(codes), slot.packed)]
    elif slot.shift:
        codes = [z3.Concat(x, z3.BitVecVal(0, slot.shift)) for x in codes]
    bits = codes[0].size()
    width = slot.kind.bits or bits
    if width < bits or (slot.kind.is_float and width not in (bits, bits + 1)):
        raise WrongUseError(f"codes of {bits} bits are no {slot.kind.name}: say another type with --port")
    if slot.kind.is_float:
        return [of_code(z3.ZeroExt(width - bits, x) if width > bits else x, slot.kind) for x in codes]
    plain = DType(slot.kind.name, "u") if bits < width or slot.kind.bits is None else slot.kind
    return [of_code(x, plain) for x in codes]


def _code_of_result(result: Any, spec: DotAdd, name: str) -> z3.BitVecRef:
    fmt = spec.d_format
    value = operate("asarray", result)
    if not isinstance(value, Traced) or value.mask is not None:
        raise HardwareError(f"the type or the shape of what {name} returns depends on the inputs")
    if value.checked().data.size != 1:
        raise WrongUseError(f"{name} returns {value.data.size} values, not one d")
    element, kind = value.data.reshape(-1)[0], value.kind
    if kind.is_float:
        if kind.fmt is None or kind.bits != fmt.storage_bits or (value.plain and fmt.storage_bits != 64):
            raise WrongUseError(f"{name} returns {kind.name}, where the model's d is {fmt.name}")
        found = element.result(kind.fmt)
        assert isinstance(found, z3.BitVecRef)
        return found
    if not isinstance(element, Integer) or (kind.bits or fmt.storage_bits) < fmt.storage_bits:
        raise WrongUseError(f"{name} returns {kind.name}, where the model's d has {fmt.storage_bits} bits")
    if kind.bits != fmt.storage_bits and (element.low < 0 or element.high >= 1 << fmt.storage_bits):
        mask = f"& {(1 << fmt.storage_bits) - 1:#x}"
        raise WrongUseError(
            f"{name} may return {element.low} to {element.high}, which are no codes: end it with {mask}"
        )
    return element.term(fmt.storage_bits)
