"""Arrays of symbolic values with the operators, methods and protocols of NumPy's arrays and torch's tensors."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.display import ShortRepr, short_text
from mmaformal.hardware.tracing.context import all_hold, any_hold, denied, known
from mmaformal.hardware.tracing.elements import Element, cast, chosen_element, constant, equal_zero
from mmaformal.hardware.tracing.kinds import (
    BOOL,
    FLOAT,
    INT,
    NUMPY,
    PYTHON,
    TORCH,
    DType,
    Library,
    Typed,
    torch,
)
from mmaformal.hardware.tracing.paths import branch_taken, decided, under
from mmaformal.hardware.tracing.refusal import refused

#: Operations of a program on values, by the names of NumPy, torch and Python: filled by `operations`.
OPERATIONS: dict[str, Callable[..., Any]] = {}


def operate(name: str, *args: Any, **kwargs: Any) -> Any:
    """An operation of values.  Raises ProgramError for one that is not followed."""
    if name not in OPERATIONS:
        raise refused(f"{name} is not followed")
    args = tuple(x.narrowed() if isinstance(x, Alternatives) else x for x in args)
    several = [x for x in args if isinstance(x, Alternatives)]
    if several:
        return _each(several[0], name, args, kwargs)
    try:
        return OPERATIONS[name](*args, **kwargs)
    except (TypeError, ValueError, IndexError) as error:
        raise refused(f"{name}: {error}") from error


def _each(first: Alternatives, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """An operation of what a value is in each case, put together."""
    found: list[tuple[z3.BoolRef, Any]] = []
    for claim, value in first.choices:
        with under(claim):
            found.append((claim, operate(name, *(value if x is first else x for x in args), **kwargs)))
    made = found[-1][1]
    for claim, value in reversed(found[:-1]):
        made = merged(claim, value, made)
    return made


class Operators:
    """The operators and methods of values, each of which is an operation."""

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("choices", "data", "kind", "library"):
            raise AttributeError(name)
        if name in _PROPERTIES:
            return operate(name, self)
        if name not in OPERATIONS:
            raise refused(f".{name} is not followed")
        return lambda *args, **kwargs: operate(name, self, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return operate("getitem", self, index)

    def __bool__(self) -> bool:
        claim = operate("truth", self)
        assert isinstance(claim, z3.BoolRef)
        return branch_taken(claim)

    def __int__(self) -> int:
        raise refused("int(…) of a value that depends on the inputs")

    def __index__(self) -> int:
        value = operate("known", self)
        if not isinstance(value, int):
            raise refused("an index, a count or a range that depends on the inputs")
        return value

    def __float__(self) -> float:
        raise refused("float(…) of a value that depends on the inputs")

    # ---- the protocols of NumPy and torch ----

    def __array__(self, *args: object, **kwargs: object) -> Any:
        raise refused(
            "a value that depends on the inputs is put into a NumPy array: use np.array on its code elsewhere"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if kwargs.get("out") is not None:
            raise refused(f"np.{name} with out=")
        if method == "__call__":
            return operate(_NUMPY.get(name, name), *args, **kwargs)
        if method == "reduce" and name in _REDUCED:
            return operate(_REDUCED[name], *args, **{"axis": 0, **kwargs})
        raise refused(f"np.{name}.{method} is not followed")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        return operate(_NUMPY.get(name, name), *args, **kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.__name__
        plain = name.strip("_") if name.startswith("__") else name
        plain = _TORCH.get(plain, plain)
        if name.startswith("__r") and plain[0] == "r" and plain[1:] in _REVERSED:
            return operate(_REVERSED[plain[1:]], args[1], args[0])
        return operate(_REVERSED.get(plain, plain), *args, **(kwargs or {}))


#: NumPy's names of operations that are called otherwise here.
_NUMPY = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "invert": "bitwise_not",
    "rint": "round",
    "power": "pow",
    "concatenate": "cat",
    "amax": "max",
    "amin": "min",
}
_TORCH = {
    "concat": "cat",
    "concatenate": "cat",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}
_REDUCED = {"add": "sum", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all"}
#: Python's names of operators.
_REVERSED = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "invert": "bitwise_not",
    **{
        name: name
        for name in ("add", "sub", "mul", "pow", "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs")
    },
}


def _operator(name: str, order: int = 1) -> Callable[..., Any]:
    return lambda self, *others: operate(name, *(self, *others)[::order])


def _in_place(name: str) -> Callable[..., Any]:
    return lambda self, other: operate("in_place", name, self, other)


for _python, _name in {**_REVERSED, "round": "round_to_int", "trunc": "trunc_to_int"}.items():
    setattr(Operators, f"__{_python}__", _operator(_name))
    setattr(Operators, f"__r{_python}__", _operator(_name, -1))
    if _python not in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "round", "trunc", "invert"):
        setattr(Operators, f"__i{_python}__", _in_place(_name))
_PROPERTIES = frozenset(("shape", "dtype", "ndim", "T", "device", "is_cuda", "itemsize", "real", "mT"))


class Traced(Operators):
    """An array of values of one kind.  `mask`: the places of it that there are, where it was taken with a mask."""

    def __init__(
        self,
        data: NDArray[np.object_],
        kind: DType,
        library: Library,
        mask: NDArray[np.object_] | None = None,
        plain: bool = False,
        family: list[Traced] | None = None,
    ) -> None:
        self.data, self.kind, self.library, self.mask, self.plain = data, kind, library, mask, plain
        self.family = [self] if family is None else family  #: with those that share its memory as other types
        self.stale = False

    def __repr__(self) -> str:
        return short_text(self, f"{self.kind.name}{list(self.data.shape)}")

    @property
    def memory(self) -> NDArray[np.object_]:
        """The values that a program may write."""
        return self.data

    @property
    def typed(self) -> Typed:
        return Typed(self.kind, self.data.ndim, self.plain)

    def with_data(self, data: Any, kind: DType | None = None) -> Traced:
        """An array of other values, in the same places."""
        return Traced(_array(data), kind or self.kind, self.library, self.mask)

    def checked(self) -> Traced:
        """This array.  Raises ProgramError where its memory was written as another type since."""
        if self.stale:
            raise refused("a tensor is read whose memory was written through a view of another type")
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        index, value = (x.narrowed() if isinstance(x, Alternatives) else x for x in (index, value))
        if isinstance(index, Alternatives):
            for claim, each_index in index.choices:
                self.write_where(claim, each_index, value)
        elif isinstance(value, Alternatives):
            for claim, each_value in value.choices:
                self.write_where(claim, index, each_value)
        else:
            operate("setitem", self, index, value)

    def write_where(self, claim: z3.BoolRef, index: Any, value: Any) -> None:
        """Put a value into places if a claim holds, and leave them as they are if not."""
        with under(claim):
            written = Traced(self.checked().data.copy(), self.kind, self.library, self.mask)
            written[index] = value
        self.write(..., each(lambda new, old: chosen_element(claim, new, old), written.data, self.data))

    def write(self, index: Any, values: Any) -> None:
        """Put values into places."""
        self.data[index] = values
        for other in self.family:
            other.stale = other is not self and other.data.base is not self.data

    def __len__(self) -> int:
        if not self.data.ndim:
            raise TypeError("no len() of a single value")
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        if not self.data.ndim:
            raise TypeError("a single value is no sequence")
        return (self[i] for i in range(len(self)))


@dataclass(repr=False, eq=False)
class Alternatives(Operators, ShortRepr):
    """A value whose type, or shape, depends on the inputs: what it is in each case; the last one in all others."""

    choices: Sequence[tuple[z3.BoolRef, Any]]

    def narrowed(self) -> Any:
        """Return what is left of it in the way that is run: one of its values, where that is decided."""
        left = [each for each in self.choices if decided(each[0]) is not False]
        sure = [each for each in left if decided(each[0])]
        if sure or len(left) == 1:
            return (sure or left)[0][1]
        return self

    def is_none(self, holds: bool) -> Traced:
        """Returns whether it is None, or is not."""
        claim = any_hold(*(given for given, value in self.choices if value is None))
        return Traced(_array(claim if holds else denied(claim)), BOOL, PYTHON)

    def __setitem__(self, index: Any, value: Any) -> None:
        for claim, each_value in self.choices:
            if decided(claim) is not False:
                if not isinstance(each_value, Traced):
                    raise refused("a value is written that may be none")
                each_value.write_where(claim, index, value)


class Unbound:
    """The value of a variable that is bound on the other side of a condition alone; to use it raises ProgramError."""

    def __getattr__(self, name: str) -> Any:
        raise refused("a variable is used that is set on one side of a condition only")


UNBOUND = Unbound()


def _array(data: Any) -> NDArray[np.object_]:
    if isinstance(data, np.ndarray) and data.dtype == object:
        return data
    made = np.empty((), object)
    made[()] = data
    return made


def each(function: Callable[..., Element], *arrays: NDArray[np.object_]) -> NDArray[np.object_]:
    """A function of single values, on arrays."""
    shapes = np.broadcast_shapes(*(x.shape for x in arrays))
    wide = [np.broadcast_to(x, shapes) for x in arrays]
    made = np.empty(shapes, object)
    for place in np.ndindex(*shapes):
        made[place] = function(*(x[place] for x in wide))
    return made


def lifted(x: Any, library: Library = PYTHON) -> Traced:
    """A value of Python's, NumPy's or torch's as an array of values."""
    if isinstance(x, Traced):
        return x.checked()
    if isinstance(x, bool | int | float):
        kind = BOOL if isinstance(x, bool) else INT if isinstance(x, int) else FLOAT
        return Traced(_array(constant(x)), kind, library, plain=True)
    if isinstance(x, np.ndarray | np.generic):
        kind = NUMPY.kind(x.dtype)
        made = np.asarray(x, np.float64) if kind.is_float else x
        return Traced(each(lambda v: constant(v), _objects(made.tolist(), x.shape)), kind, NUMPY)
    if "torch" in sys.modules and isinstance(x, torch().Tensor):
        kind = TORCH.kind(x.dtype)
        values = (x.double() if kind.is_float else x).tolist()
        return Traced(each(lambda v: constant(v), _objects(values, tuple(x.shape))), kind, TORCH)
    if isinstance(x, list | tuple):
        return stacked([lifted(y, library) for y in x], library)
    raise refused(f"{type(x).__name__} is no value that is followed")


def _objects(values: Any, shape: tuple[int, ...]) -> NDArray[np.object_]:
    made = np.empty(shape, object)
    if not shape:
        made[()] = values
    else:
        made.reshape(-1)[:] = _flat(values, len(shape))
    return made


def _flat(values: Any, depth: int) -> list[Any]:
    return [y for x in values for y in _flat(x, depth - 1)] if depth > 1 else list(values)


def stacked(parts: Sequence[Traced], library: Library) -> Traced:
    """Arrays of one shape as one array, along a new first axis."""
    kind = common_kind([x.typed for x in parts], library)
    shape = parts[0].data.shape
    made = np.empty((len(parts), *shape), object)
    for i, x in enumerate(parts):
        made[i] = as_kind(x, kind).data if x.data.shape else as_kind(x, kind).data[()]
    return Traced(made, kind, library)


def library_of(*values: Any) -> Library:
    """The library that operates on some values."""
    found = PYTHON
    for x in values:
        if isinstance(x, list | tuple):
            mine = library_of(*x)
        elif isinstance(x, Traced):
            mine = x.library
        elif isinstance(x, Alternatives):
            mine = library_of(x.choices[0][1])
        else:
            mine = NUMPY if isinstance(x, np.ndarray | np.generic) else PYTHON
            if "torch" in sys.modules and isinstance(x, torch().Tensor):
                mine = TORCH
        if mine.name != "python":
            found = mine
    return found


def common_kind(types: Sequence[Typed], library: Library) -> DType:
    """The kind that several have in common."""
    made = types[0]
    for other in types[1:]:
        kind = library.joined(made, other)
        made = Typed(kind, max(made.dimensions, other.dimensions), made.plain and other.plain)
    return made.kind


def as_kind(x: Traced, kind: DType) -> Traced:
    """An array of values of a kind."""
    if x.kind == kind:
        return x
    return x.with_data(each(lambda v: cast(v, x.kind, kind, x.library), x.data), kind)


def claim_of(x: Traced) -> z3.BoolRef:
    """Return the claim that a single value is true, or not 0."""
    if x.data.size != 1:
        raise refused("the truth of more than one value: use .any() or .all()")
    value = x.data.reshape(-1)[0]
    truth = denied(equal_zero(value))
    return truth if x.mask is None else all_hold(x.mask.reshape(-1)[0], truth)


def merged(claim: z3.BoolRef, x: Any, y: Any) -> Any:
    """`If` of two values, or of tuples, lists and dictionaries of them."""
    if (value := known(claim)) is not None:
        return x if value else y
    if x is y or x is UNBOUND:
        return x
    if y is UNBOUND:
        return y
    if isinstance(x, tuple | list) and type(x) is type(y) and len(x) == len(y):
        parts = [merged(claim, u, v) for u, v in zip(x, y, strict=True)]
        return parts if isinstance(x, list) else type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        return chosen_element(claim, x, y)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype == y.dtype == object:
        return each(lambda u, v: u if u is v else chosen_element(claim, u, v), x, y)
    if isinstance(x, dict) and isinstance(y, dict) and x.keys() == y.keys():
        return {key: merged(claim, x[key], y[key]) for key in x}
    if not isinstance(x, Operators) and not isinstance(y, Operators):
        if type(x) is type(y) and _alike(x, y):
            return x
        plain = (bool, int, float, type(None))
        if not isinstance(x, plain) or not isinstance(y, plain):
            raise refused(f"{type(x).__name__} or {type(y).__name__}, as the inputs are")
    if isinstance(x, Alternatives) or isinstance(y, Alternatives) or x is None or y is None:
        return _among(claim, x, y)
    u, v = (lifted(z, library_of(x, y)) for z in (x, y))
    if u.kind != v.kind or u.data.shape != v.data.shape or (u.mask is None) != (v.mask is None):
        return Alternatives([(claim, u), (denied(claim), v)])
    made = each(lambda p, q: chosen_element(claim, p, q), u.data, v.data)
    return Traced(made, u.kind, library_of(u, v), u.mask, u.plain and v.plain)


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, float):
        return x == y and math.copysign(1, x) == math.copysign(1, y)
    return bool(x == y)


def _among(claim: z3.BoolRef, x: Any, y: Any) -> Any:
    """Alternatives of two, those of one type as one."""
    groups: dict[object, list[tuple[z3.BoolRef, Any]]] = {}
    for given, value in ((claim, x), (denied(claim), y)):
        for other, each_value in value.choices if isinstance(value, Alternatives) else [(None, value)]:
            there = given if other is None else all_hold(given, other)
            found = None if each_value is None else lifted(each_value, library_of(value))
            key = None if found is None else (found.kind, found.data.shape)
            if known(there) is not False:
                groups.setdefault(key, []).append((there, found))
    made = []
    for members in groups.values():
        joined = members[-1][1]
        for given, value in reversed(members[:-1]):
            joined = merged(given, value, joined)
        made.append((any_hold(*(given for given, _ in members)), joined))
    return made[0][1] if len(made) == 1 else Alternatives(made)
