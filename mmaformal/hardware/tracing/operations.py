"""What a program may do with arrays of values, by the names that NumPy, torch and Python have for it."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.hardware.tracing import elements
from mmaformal.hardware.tracing.context import TRUE, both, either, known, negated
from mmaformal.hardware.tracing.elements import Element, chosen_element, equal_zero
from mmaformal.hardware.tracing.floating import Floating
from mmaformal.hardware.tracing.kinds import (
    BOOL,
    FLOAT,
    INT,
    KINDS,
    NUMPY,
    PYTHON,
    TORCH,
    Kind,
    Library,
    torch,
)
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.traced import (
    OPERATIONS,
    Traced,
    as_kind,
    claim_of,
    common,
    each,
    library_of,
    lifted,
)
from mmaformal.hardware.tracing.whole import Whole
from mmaformal.rounding import Rounding

_Split = namedtuple("_Split", ("mantissa", "exponent"))
_Largest = namedtuple("_Largest", ("values", "indices"))


def _named(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


def _operands(*values: Any) -> tuple[list[Traced], Library]:
    library = library_of(*values)
    return [lifted(x, library) for x in values], library


def _made(data: NDArray[np.object_], kind: Kind, *of: Traced, library: Library | None = None) -> Traced:
    """A result, with the mask that its operands have.  Raises ProgramError where they have different ones."""
    masks = [x.mask for x in of if x.mask is not None]
    for mask in masks[1:]:
        if mask.shape != masks[0].shape or not all(
            u is v or u.eq(v) for u, v in zip(mask.reshape(-1), masks[0].reshape(-1), strict=True)
        ):
            raise refused("values taken with two masks are put together: use where")
    if masks and any(x.mask is None and x.data.ndim for x in of):
        raise refused("values taken with a mask are put together with others that are not: use where")
    plain = all(x.plain for x in of) if of else False
    return Traced(data, kind, library or library_of(*of), masks[0] if masks else None, plain)


# ---- elementwise ----


def _arithmetic(name: str, function: elements.Binary, division: bool = False) -> None:
    def apply(x: Any, y: Any, *, alpha: int = 1) -> Traced:
        if alpha != 1:
            raise refused("alpha= is not followed")
        (u, v), library = _operands(x, y)
        kind = common([u.typed, v.typed], library)
        if division:
            kind = library.divided(kind)
        elif kind.letter == "b" and name != "mul":
            kind = library.of_bools() if library is not NUMPY else BOOL
        p, q = as_kind(u, kind).data, as_kind(v, kind).data
        return _made(each(lambda s, t: function(s, t, kind), p, q), kind, u, v, library=library)

    _named(name)(apply)


_arithmetic("add", elements.add)
_arithmetic("sub", elements.subtract)
_arithmetic("mul", elements.multiply)
_arithmetic("div", elements.divide, division=True)
_arithmetic("floor_divide", elements.floor_divide)
_arithmetic("remainder", elements.remainder)
for _name in ("and", "or", "xor"):
    _arithmetic(f"bitwise_{_name}", functools.partial(elements.bitwise, _name))


def _bitwise_on_claims(name: str) -> None:
    plain = OPERATIONS[f"bitwise_{name}"]

    def apply(x: Any, y: Any) -> Traced:
        (u, v), library = _operands(x, y)
        if u.kind == BOOL and v.kind == BOOL:
            made = each(lambda s, t: elements.bitwise(name, s, t, BOOL), u.data, v.data)
            return _made(made, BOOL, u, v, library=library)
        result = plain(x, y)
        assert isinstance(result, Traced)
        return result

    _named(f"bitwise_{name}", f"__{name}__")(apply)

    def logical(x: Any, y: Any) -> Traced:
        (u, v), library = _operands(x, y)
        p, q = as_kind(u, BOOL).data, as_kind(v, BOOL).data
        return _made(each(lambda s, t: elements.bitwise(name, s, t, BOOL), p, q), BOOL, u, v, library=library)

    _named(f"logical_{name}")(logical)


for _name in ("and", "or", "xor"):
    _bitwise_on_claims(_name)


def _shifting(name: str, function: Callable[..., Element]) -> None:
    def apply(x: Any, y: Any) -> Traced:
        (u, v), library = _operands(x, y)
        if u.kind.is_float or v.kind.is_float:
            raise TypeError("floating-point numbers are not shifted")
        kind = common([u.typed, v.typed], library)
        p, q = as_kind(u, kind).data, as_kind(v, kind).data
        made = each(lambda s, t: function(s, t, kind, library.name), p, q)
        return _made(made, kind, u, v, library=library)

    _named(name)(apply)


_shifting("left_shift", elements.shift_left)
_shifting("right_shift", elements.shift_right)


def _comparing(name: str, function: Callable[[Element, Element], z3.BoolRef]) -> None:
    def apply(x: Any, y: Any) -> Any:
        if x is None or y is None or isinstance(x, str) or isinstance(y, str):
            return name == "ne"
        (u, v), library = _operands(x, y)
        kind = common([u.typed, v.typed], library)
        if kind == BOOL and name not in ("eq", "ne"):
            kind = KINDS["uint8"]
        p, q = as_kind(u, kind).data, as_kind(v, kind).data
        return _made(each(function, p, q), BOOL, u, v, library=library)

    _named(name)(apply)


def _not_above(x: Element, y: Element) -> z3.BoolRef:
    if isinstance(x, Floating) and isinstance(y, Floating):
        return either(elements.less(x, y), elements.same(x, y))
    return negated(elements.less(y, x))


_comparing("lt", elements.less)
_comparing("gt", lambda x, y: elements.less(y, x))
_comparing("le", _not_above)
_comparing("ge", lambda x, y: _not_above(y, x))
_comparing("eq", elements.same)
_comparing("ne", lambda x, y: negated(elements.same(x, y)))


def _unary(function: Callable[[Element, Kind], Element], *names: str, result: Kind | None = None) -> None:
    def apply(x: Any) -> Traced:
        u = lifted(x)
        return _made(each(lambda s: function(s, u.kind), u.data), result or u.kind, u, library=u.library)

    _named(*names)(apply)


_unary(elements.negative, "neg")
_unary(elements.absolute, "abs")
_unary(lambda x, kind: x, "pos")
_unary(lambda x, kind: elements.rounded(x, Rounding.RZ), "trunc", "fix")
_unary(lambda x, kind: elements.rounded(x, Rounding.RD), "floor")
_unary(lambda x, kind: elements.rounded(x, Rounding.RU), "ceil")


def _flag(x: Element, name: str) -> z3.BoolRef:
    if not isinstance(x, Floating):
        return z3.BoolVal(name == "finite")
    if name == "finite":
        return negated(x.special)
    return x.nan if name == "nan" else both(x.infinite, negated(x.nan))


_unary(lambda x, kind: _flag(x, "nan"), "isnan", result=BOOL)
_unary(lambda x, kind: _flag(x, "inf"), "isinf", result=BOOL)
_unary(lambda x, kind: _flag(x, "finite"), "isfinite", result=BOOL)
_unary(
    lambda x, kind: x.negated if isinstance(x, Floating) else elements.less(_int(x), Whole.of(0)),
    "signbit",
    result=BOOL,
)
_unary(lambda x, kind: negated(negated(equal_zero(x))), "logical_not", result=BOOL)


def _int(x: Element) -> Whole:
    return elements.of_claim(x) if isinstance(x, z3.BoolRef) else x if isinstance(x, Whole) else Whole.of(0)


@_named("bitwise_not", "__invert__")
def _bitwise_not(x: Any) -> Traced:
    u = lifted(x)

    def one(value: Element) -> Element:
        if isinstance(value, z3.BoolRef):
            return negated(value)
        assert isinstance(value, Whole)
        if u.kind.letter == "u":
            assert u.kind.range is not None
            return -value + u.kind.range[1]
        return -value - 1

    return _made(each(one, u.data), u.kind, u, library=u.library)


@_named("round")
def _round(x: Any, decimals: int = 0) -> Traced:
    if decimals:
        raise refused("round to decimals")
    u = lifted(x)
    return _made(each(lambda s: elements.rounded(s, Rounding.RNE), u.data), u.kind, u, library=u.library)


def _to_int(rounding: Rounding) -> Callable[[Any], Traced]:
    def apply(x: Any) -> Traced:
        u = lifted(x)
        made = each(lambda s: elements.cast(elements.rounded(s, rounding), u.kind, INT, u.library), u.data)
        return _made(made, INT, u, library=u.library)

    return apply


_named("round_to_int")(_to_int(Rounding.RNE))
_named("trunc_to_int")(_to_int(Rounding.RZ))
_named("floor_to_int")(_to_int(Rounding.RD))
_named("ceil_to_int")(_to_int(Rounding.RU))


@_named("numpy_of", "array_of", "asarray_of")
def _numpy_of(x: Any, dtype: Any = None) -> Traced:
    """Values as an array of NumPy's."""
    return _in_library(x, dtype, NUMPY)


@_named("tensor_of", "as_tensor_of")
def _tensor_of(x: Any, dtype: Any = None) -> Traced:
    """Values as a tensor of torch's."""
    return _in_library(x, dtype, TORCH)


def _in_library(x: Any, dtype: Any, library: Library) -> Traced:
    u = lifted(x)
    kind = u.kind if dtype is None else library.kind(dtype)
    if kind.bits is None:
        kind = KINDS["int64"]
    if kind == FLOAT and dtype is None and u.plain and library is TORCH:
        kind = KINDS["float32"]
    return Traced(as_kind(u, kind).data, kind, library)


@_named("sign")
def _sign(x: Any) -> Traced:
    u = lifted(x)
    zero, one, minus = (
        elements.cast(elements.constant(v), FLOAT if u.kind.is_float else INT, u.kind, u.library)
        for v in ((0.0, 1.0, -1.0) if u.kind.is_float else (0, 1, -1))
    )

    def of(value: Element) -> Element:
        if isinstance(value, Floating):
            return chosen_element(
                value.nan, value, chosen_element(value.zero, zero, chosen_element(value.negated, minus, one))
            )
        less = elements.less(value, Whole.of(0))
        return chosen_element(less, minus, chosen_element(equal_zero(value), zero, one))

    return _made(each(of, u.data), u.kind, u, library=u.library)


@_named("copysign")
def _copysign(x: Any, y: Any) -> Traced:
    (u, v), library = _operands(x, y)
    kind = common([u.typed, v.typed], library)

    def one(value: Element, sign: Element) -> Element:
        if not isinstance(value, Floating) or not isinstance(sign, Floating):
            raise refused("copysign of what is no floating-point number")
        return replace(value, sign=sign.sign, code=None, total=None)

    return _made(each(one, as_kind(u, kind).data, as_kind(v, kind).data), kind, u, v, library=library)


@_named("frexp")
def _frexp(x: Any) -> Any:
    u = lifted(x)
    pairs = [elements.split(value) for value in u.data.reshape(-1)]
    made = [np.empty(u.data.shape, object) for _ in range(2)]
    for i in range(2):
        made[i].reshape(-1)[:] = [pair[i] for pair in pairs]
    kind = INT if u.library is PYTHON else KINDS["int32"]
    return _Split(_made(made[0], u.kind, u, library=u.library), _made(made[1], kind, u, library=u.library))


def _floating_kind(u: Traced) -> Kind:
    """The kind of what a function of real numbers gives."""
    return u.kind if u.kind.is_float else u.library.divided(u.kind)


@_named("exp2")
def _exp2(x: Any) -> Traced:
    u = lifted(x)
    kind = _floating_kind(u)
    return _made(each(lambda s: elements.power_of_two(s, kind), u.data), kind, u, library=u.library)


@_named("ldexp")
def _ldexp(x: Any, e: Any) -> Any:
    (u, v), library = _operands(x, e)
    if u.library is PYTHON and library is PYTHON:
        power = each(lambda s: elements.power_of_two(s, Kind("wide", "f", 4096, _WIDE)), v.data)
        made = each(lambda s, t: elements.multiply(s, t, FLOAT), as_kind(u, FLOAT).data, power)
        return _made(made, FLOAT, u, v, library=library)
    kind = _floating_kind(u)
    power = each(lambda s: elements.power_of_two(s, kind), v.data)
    return _made(
        each(lambda s, t: elements.multiply(s, t, kind), as_kind(u, kind).data, power),
        kind,
        u,
        v,
        library=library,
    )


_WIDE = KINDS["float64"].fmt


@_named("pow")
def _pow(x: Any, y: Any) -> Traced:
    (u, v), library = _operands(x, y)
    base = u.data.reshape(-1)[0] if u.data.size == 1 else None
    two = isinstance(base, Whole) and base.value == 2
    two = two or (
        isinstance(base, Floating) and base.power and base.exponent.value == 1 and z3.is_false(base.negated)
    )
    if two:
        if not u.kind.is_float and not v.kind.is_float:
            one = 1 if library is PYTHON else u.with_data(each(lambda s: Whole.of(1), u.data))
            return lifted(OPERATIONS["left_shift"](one, v))
        kind = common([u.typed, v.typed], library)
        return _made(each(lambda s: elements.power_of_two(s, kind), v.data), kind, v, library=library)
    exponent = v.data.reshape(-1)[0] if v.data.size == 1 else None
    if isinstance(exponent, Whole) and exponent.value in (1, 2, 3):
        made: Any = u
        for _ in range(exponent.value - 1):
            made = OPERATIONS["mul"](made, u)
        assert isinstance(made, Traced)
        return made
    raise refused("a power whose base is not 2, and whose exponent is not 1, 2 or 3")


@_named("bit_length")
def _bit_length(x: Any) -> Traced:
    u = lifted(x)
    return _made(each(elements.bit_length, u.data), INT, u, library=u.library)


@_named("where")
def _where(condition: Any, x: Any, y: Any) -> Traced:
    (c, u, v), library = _operands(condition, x, y)
    kind = common([u.typed, v.typed], library)
    made = each(chosen_element, as_kind(c, BOOL).data, as_kind(u, kind).data, as_kind(v, kind).data)
    return _made(made, kind, c, u, v, library=library)


@_named("masked_fill")
def _masked_fill(x: Any, mask: Any, value: Any) -> Traced:
    u = lifted(x)
    v = as_kind(lifted(value, u.library), u.kind)
    return _made(each(chosen_element, lifted(mask).data, v.data, u.data), u.kind, u, library=u.library)


def _extreme(name: str, function: Callable[[Element, Element], Element]) -> None:
    def apply(x: Any, y: Any) -> Traced:
        (u, v), library = _operands(x, y)
        kind = common([u.typed, v.typed], library)
        return _made(
            each(function, as_kind(u, kind).data, as_kind(v, kind).data), kind, u, v, library=library
        )

    _named(name)(apply)


_extreme("maximum", elements.larger)
_extreme("minimum", elements.smaller)


@_named("clamp", "clip")
def _clamp(x: Any, min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    made = x if low is None else OPERATIONS["maximum"](x, low)
    return made if high is None else OPERATIONS["minimum"](made, high)


@_named("nan_to_num")
def _nan_to_num(x: Any, nan: float = 0.0) -> Traced:
    u = lifted(x)
    value = elements.cast(elements.constant(float(nan)), FLOAT, u.kind, u.library)
    if any(isinstance(s, Floating) and known(s.infinite) is not False for s in u.data.reshape(-1)):
        raise refused("nan_to_num of what may be infinite")
    return _made(
        each(lambda s: chosen_element(_flag(s, "nan"), value, s), u.data), u.kind, u, library=u.library
    )


# ---- reductions ----


def _reduced(
    x: Traced, axis: Any, keep: bool, function: Callable[[Sequence[Element]], Element], kind: Kind
) -> Traced:
    axes = (
        tuple(range(x.data.ndim))
        if axis is None
        else tuple(axis)
        if isinstance(axis, tuple | list)
        else (axis,)
    )
    axes = tuple(sorted(a % x.data.ndim for a in axes)) if x.data.ndim else ()
    rest = [a for a in range(x.data.ndim) if a not in axes]
    moved = x.data.transpose([*rest, *axes]).reshape((*(x.data.shape[a] for a in rest), -1))
    made = np.empty(moved.shape[:-1], object)
    for place in np.ndindex(*made.shape):
        made[place] = function(list(moved[place]))
    if keep:
        made = made.reshape([1 if a in axes else n for a, n in enumerate(x.data.shape)])
    return Traced(made, kind, x.library)


def _axis(kwargs: dict[str, Any], given: tuple[Any, ...]) -> tuple[Any, bool]:
    axis = kwargs.pop("dim", kwargs.pop("axis", given[0] if given else None))
    keep = kwargs.pop("keepdim", kwargs.pop("keepdims", given[1] if len(given) > 1 else False))
    for name in ("out", "dtype", "initial", "where"):
        if kwargs.get(name) is None or kwargs.get(name) is np._NoValue:
            kwargs.pop(name, None)
    if kwargs:
        raise refused(f"{', '.join(kwargs)} is not followed")
    return axis, bool(keep) and keep is not np._NoValue


@_named("sum")
def _sum(x: Any, *given: Any, **kwargs: Any) -> Traced:
    u, dtype = lifted(x), kwargs.pop("dtype", None)
    axis, keep = _axis(kwargs, given)
    kind = u.kind if dtype is None else u.library.kind(dtype)
    if dtype is None and not kind.is_float and (kind.bits or 64) < 64:
        kind = KINDS["uint64"] if kind.letter == "u" and u.library is NUMPY else KINDS["int64"]
    if u.mask is not None:
        raise refused("a sum of values taken with a mask: use where")
    u = as_kind(u, kind)
    return _reduced(u, axis, keep, lambda every: elements.summed(every, kind, u.library.name), kind)


def _largest(name: str, pair: Callable[[Element, Element], Element]) -> None:
    other = OPERATIONS["maximum" if name == "max" else "minimum"]

    def apply(x: Any, *given: Any, **kwargs: Any) -> Any:
        if given and isinstance(given[0], Traced):
            return other(x, given[0])
        u = lifted(x)
        if u.mask is not None:
            raise refused(f"{name} of values taken with a mask: use where")
        axis, keep = _axis(kwargs, given)
        made = _reduced(u, axis, keep, lambda every: _tree(every, pair), u.kind)
        return _Largest(made, _NoIndices()) if u.library is TORCH and axis is not None else made

    _named(name)(apply)

    def alone(x: Any, *given: Any, **kwargs: Any) -> Any:
        made = apply(x, *given, **kwargs)
        return made.values if isinstance(made, _Largest) else made

    _named(f"a{name}")(alone)


class _NoIndices:
    """What stands for the indices of maxima, which are not followed."""

    def __getattr__(self, name: str) -> Any:
        raise refused("the places of maxima are not followed")


def _tree(every: Sequence[Element], pair: Callable[[Element, Element], Element]) -> Element:
    if len(every) == 1:
        return every[0]
    half = len(every) // 2
    return pair(_tree(every[:half], pair), _tree(every[half:], pair))


_largest("max", elements.larger)
_largest("min", elements.smaller)


def _quantified(name: str, join: Callable[..., z3.BoolRef]) -> None:
    def apply(x: Any, *given: Any, **kwargs: Any) -> Traced:
        u = lifted(x)
        axis, keep = _axis(kwargs, given)
        data = as_kind(u, BOOL).data
        if u.mask is not None:
            data = each(lambda m, s: both(m, s) if name == "any" else either(negated(m), s), u.mask, data)
        return _reduced(Traced(data, BOOL, u.library), axis, keep, lambda every: join(*every), BOOL)

    _named(name)(apply)


_quantified("any", either)
_quantified("all", both)


@_named("count_nonzero")
def _count(x: Any, *given: Any, **kwargs: Any) -> Traced:
    u = as_kind(lifted(x), BOOL)
    made = OPERATIONS["sum"](as_kind(u, KINDS["int64"]), *given, **kwargs)
    assert isinstance(made, Traced)
    return made


# ---- structure ----


def _shaped(x: Traced, data: NDArray[np.object_], mask: NDArray[np.object_] | None = None) -> Traced:
    if x.mask is not None and mask is None:
        raise refused("the shape of what was taken with a mask")
    found = Traced(data, x.kind, x.library, mask, family=x.family)
    x.family.append(found)
    return found


def _structural(function: Callable[..., NDArray[np.object_]], *names: str) -> None:
    def apply(x: Any, *args: Any, **kwargs: Any) -> Traced:
        u = lifted(x, library_of(x))
        return _shaped(u, function(u.data, *args, **kwargs))

    _named(*names)(apply)


def _sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    if len(given) == 1 and isinstance(given[0], tuple | list):
        given = tuple(given[0])
    return tuple(int(n) for n in given)


def _permuted(x: NDArray[np.object_], *axes: Any) -> NDArray[np.object_]:
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
    return x.transpose(tuple(given)) if given else x.T


def _expanded(x: NDArray[np.object_], *sizes: Any) -> NDArray[np.object_]:
    shape = _sizes(sizes)
    before = (1,) * (len(shape) - x.ndim) + x.shape
    return np.broadcast_to(
        x, tuple(old if new == -1 else new for old, new in zip(before, shape, strict=True))
    )


_structural(lambda x, dim: np.expand_dims(x, dim), "unsqueeze")
_structural(lambda x, axis: np.expand_dims(x, axis), "expand_dims")
_structural(lambda x, dim=None, axis=None: np.squeeze(x, dim if axis is None else axis), "squeeze")
_structural(_expanded, "expand")
_structural(lambda x, shape: np.broadcast_to(x, _sizes((shape,))), "broadcast_to")
_structural(lambda x, *s, **k: x.reshape(_sizes(s or tuple(k.values()))), "reshape")
_structural(lambda x, start_dim=0, end_dim=-1: x.reshape(-1), "flatten", "ravel")
_structural(lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1), "swapaxes")
_structural(_permuted, "permute")
_structural(lambda x, source, destination: np.moveaxis(x, source, destination), "moveaxis", "movedim")
_structural(lambda x, dims=None, axis=None: np.flip(x, dims if axis is None else axis), "flip")
_structural(lambda x: x.T, "T", "t")
_structural(lambda x: np.swapaxes(x, -1, -2), "mT")


@_named("transpose")
def _transpose(x: Any, *axes: Any) -> Traced:
    u = lifted(x)
    if u.library is TORCH:
        return _shaped(u, np.swapaxes(u.data, *axes))
    return _shaped(u, _permuted(u.data, *axes))


@_named("view")
def _view(x: Any, *given: Any, **kwargs: Any) -> Any:
    """Another shape, or the same bits as another type."""
    u = lifted(x)
    target = given[0] if given else next(iter(kwargs.values()))
    if isinstance(target, int | tuple | list) or "Size" in type(target).__name__:
        return _shaped(u, u.data.reshape(_sizes(given)))
    kind = target if isinstance(target, Kind) else u.library.kind(target)
    if kind == u.kind:
        return u
    if u.kind.bits != kind.bits or BOOL in (u.kind, kind):
        raise refused(f"a view of {u.kind.name} as {kind.name}, of other sizes")
    data = each(lambda s: elements.of_code(elements.code_of(s, u.kind), kind), u.data)
    made = Traced(data, kind, u.library, u.mask, family=u.family)
    u.family.append(made)
    return made


@_named("getitem", "__getitem__")
def _getitem(x: Any, index: Any) -> Any:
    library = library_of(x, index if not isinstance(index, tuple) else list(_traced(index)))
    u = lifted(x, library)
    if isinstance(index, Traced):
        if index.kind == BOOL:
            return _taken(u, index)
        return _looked_up(u, index)
    if isinstance(index, tuple) and any(isinstance(i, Traced) for i in index):
        raise refused("an index of several parts that depends on the inputs")
    found = u.data[index]
    if not isinstance(found, np.ndarray):
        made = np.empty((), object)
        made[()] = found
        if u.data.ndim and u.library is TORCH:
            found = u.data[(*index, ...) if isinstance(index, tuple) else (index, ...)]
        else:
            found = made
    return _shaped(u, found)


def _traced(index: tuple[Any, ...]) -> list[Traced]:
    return [i for i in index if isinstance(i, Traced)]


def _taken(u: Traced, mask: Traced) -> Traced:
    """The places of an array where a mask holds; they stay where they are, since how many there are is not known."""
    if u.mask is not None or mask.mask is not None:
        raise refused("a mask on what was taken with a mask: use where")
    if mask.data.shape != u.data.shape:
        raise refused("a mask of another shape: use where")
    from mmaformal.hardware.tracing.floating import implied

    data = each(lambda m, s: implied(m, s, True) if isinstance(s, Whole) else s, mask.data, u.data)
    return Traced(data, u.kind, u.library, mask.data)


def _looked_up(u: Traced, index: Traced) -> Traced:
    """Entries of a table."""
    size = u.data.shape[0]
    rows = [u.data[i] for i in range(size)]

    def one(place: Element) -> Any:
        value = _int(place)
        if value.low < 0 or value.high >= size:
            raise refused(f"an index that may be {value.low} to {value.high}, of {size} entries")
        return value

    places = each(one, index.data)
    if u.data.ndim > 1:
        raise refused("rows of a table, by an index that depends on the inputs")
    made = each(lambda place: _entry(rows, place), places)
    return Traced(made, u.kind, u.library, index.mask)


def _entry(rows: Sequence[Element], place: Whole) -> Element:
    if place.value is not None:
        return rows[place.value]
    bits = max(1, place.most.bit_length())
    term = place.term(bits)
    fixed = [
        x
        for x in rows
        if isinstance(x, Floating) and z3.is_bv_value(x.significand) and known(x.special) is False
    ]
    if len(fixed) == len(rows):
        return _number_of_table(fixed, term)
    found = rows[min(place.high, len(rows) - 1)]
    for i in reversed(range(place.low, place.high)):
        found = chosen_element(term == i, rows[i], found)
    return found


def _number_of_table(rows: Sequence[Floating], index: z3.BitVecRef) -> Floating:
    """A number of a table, in units of the last place that any of them has."""
    some = [x for x in rows if not x.is_constant_zero]
    low = min(x.low for x in some)
    high = max(x.high for x in some)
    width = high - low
    signs = [x.sign for x in rows]
    sizes = [
        z3.BitVecVal(0, width) if x.is_constant_zero else z3.simplify(x.magnitude_at(low, width))
        for x in rows
    ]
    term = _mux(sizes, index)
    return Floating(
        _mux(signs, index), term, Whole.of(low), low, high, max(x.digits for x in some), term == 0
    )


def _mux(entries: Sequence[z3.BitVecRef], index: z3.BitVecRef) -> z3.BitVecRef:
    if len(entries) == 1 or index.size() == 0:
        return entries[0]
    top = index.size() - 1
    half = 1 << top
    bit = z3.Extract(top, top, index)
    low, high = entries[:half], entries[half:]
    rest = z3.Extract(top - 1, 0, index) if top else None
    pick = [side[0] if rest is None or not side else _mux(side, rest) for side in (low, high) if side]
    if len(pick) == 1:
        return pick[0]
    return pick[0] if pick[0].eq(pick[1]) else z3.If(bit == 1, pick[1], pick[0])


@_named("setitem", "__setitem__")
def _setitem(x: Traced, index: Any, value: Any) -> None:
    u = x.checked()
    if not isinstance(u, Traced):
        raise refused("a value that depends on the inputs is written into another array")
    v = lifted(value, u.library)
    v = as_kind(v, u.kind)
    if isinstance(index, Traced) and index.kind == BOOL:
        if index.data.shape != u.data.shape:
            raise refused("a mask of another shape: use where")
        if v.mask is not None and not all(
            p is q or p.eq(q) for p, q in zip(v.mask.reshape(-1), index.data.reshape(-1), strict=True)
        ):
            raise refused("values taken with one mask are put where another holds: use where")
        if v.mask is None and v.data.size != 1:
            raise refused("values are put where a mask holds, whose number is not known: use where")
        u.write(..., each(chosen_element, index.data, np.broadcast_to(v.data, u.data.shape), u.data))
        return
    if isinstance(index, Traced) or (isinstance(index, tuple) and _traced(index)):
        raise refused("a place to write that depends on the inputs")
    target = u.data[index]
    if isinstance(target, np.ndarray):
        u.write(index, np.broadcast_to(v.data, target.shape))
    else:
        u.write(index, v.data.reshape(-1)[0])


def _sequence(parts: Any) -> tuple[list[Traced], Library, Kind]:
    given = list(parts)
    library = library_of(given)
    every = [lifted(x, library) for x in given]
    return every, library, common([x.typed for x in every], library)


@_named("cat")
def _cat(parts: Any, dim: int = 0, axis: int | None = None) -> Traced:
    every, library, kind = _sequence(parts)
    data = np.concatenate([as_kind(x, kind).data for x in every], axis=dim if axis is None else axis)
    return _made(data, kind, *every, library=library)


@_named("stack")
def _stack(parts: Any, dim: int = 0, axis: int | None = None) -> Traced:
    every, library, kind = _sequence(parts)
    data = np.stack([as_kind(x, kind).data for x in every], axis=dim if axis is None else axis)
    return _made(data, kind, *every, library=library)


@_named("unbind")
def _unbind(x: Any, dim: int = 0) -> tuple[Traced, ...]:
    u = lifted(x)
    return tuple(_shaped(u, np.take(u.data, i, axis=dim)) for i in range(u.data.shape[dim]))


@_named("repeat_interleave", "repeat")
def _repeat(x: Any, repeats: int, dim: int | None = None, axis: int | None = None) -> Traced:
    u = lifted(x)
    along = dim if axis is None else axis
    if u.library is TORCH and along is None:
        raise refused("repeat of a tensor")
    return _made(np.repeat(u.data, repeats, axis=along), u.kind, u, library=u.library)


@_named("array", "asarray", "as_tensor", "tensor", "ascontiguousarray")
def _as_array(x: Any, dtype: Any = None) -> Traced:
    u = lifted(x, library_of(x))
    return u if dtype is None else as_kind(u, u.library.kind(dtype))


def _like(value: float) -> Callable[..., Traced]:
    def apply(x: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Traced:
        u = lifted(x)
        kind = u.kind if dtype is None else u.library.kind(dtype)
        fill = args[0] if args else value
        source = FLOAT if isinstance(fill, float) else INT
        one = elements.cast(elements.constant(fill), source, kind, u.library)
        return Traced(each(lambda _: one, u.data), kind, u.library)

    return apply


_named("zeros_like", "empty_like", "new_zeros")(_like(0))
_named("ones_like")(_like(1))
_named("full_like")(_like(0))


# ---- types ----


@_named("to", "astype", "type")
def _to(x: Any, *given: Any, **kwargs: Any) -> Traced:
    u = lifted(x)
    wanted = [y for y in (*given, kwargs.get("dtype")) if y is not None and not isinstance(y, str | bool)]
    wanted = [y for y in wanted if "device" not in type(y).__name__]
    if isinstance(given[0] if given else None, str) and u.library is NUMPY:
        wanted = [np.dtype(given[0])]
    if wanted and isinstance(wanted[0], Traced):
        wanted = [u.library.dtype(wanted[0].kind)]
    if not wanted:
        return u
    kind = u.library.kind(wanted[0])
    made = as_kind(u, kind)
    return made.with_data(made.data.copy()) if made is u and u.library is NUMPY else made


def _typed(name: str, kind: str) -> None:
    @_named(name)
    def apply(x: Any) -> Traced:
        u = lifted(x)
        return as_kind(u, KINDS[kind])


for _name, _kind in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "bool": "bool",
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
}.items():
    _typed(_name, _kind)


@_named("contiguous", "detach", "cpu", "item", "tolist")
def _itself(x: Any) -> Traced:
    return lifted(x)


@_named("clone", "copy")
def _clone(x: Any, *args: Any, **kwargs: Any) -> Traced:
    u = lifted(x)
    return _made(u.data.copy(), u.kind, u, library=u.library)


@_named("shape")
def _shape(x: Traced) -> Any:
    if x.mask is not None:
        raise refused("the shape of what was taken with a mask")
    return torch().Size(x.data.shape) if x.library is TORCH else x.data.shape


@_named("size")
def _size(x: Traced, dim: int | None = None) -> Any:
    if x.library is NUMPY:
        return x.data.size
    return _shape(x) if dim is None else _shape(x)[dim]


@_named("dtype")
def _dtype(x: Traced) -> Any:
    return x.library.dtype(x.kind)


_named("ndim", "dim")(lambda x: x.data.ndim)
_named("numel")(lambda x: x.data.size)
_named("itemsize", "element_size")(lambda x: (x.kind.bits or 64) // 8)
_named("device")(lambda x: torch().device("cpu"))
_named("is_cuda")(lambda x: False)
_named("is_floating_point")(lambda x: x.kind.is_float)
_named("truth")(lambda x: claim_of(x))
_named("real")(lambda x: x)


@_named("in_place")
def _in_place(name: str, x: Traced, y: Any) -> Any:
    """`x += y` and the like: written into arrays, but a new value of what is no array."""
    made = OPERATIONS[name](x, y)
    if x.library is PYTHON or (x.library is NUMPY and not x.data.ndim) or not isinstance(made, Traced):
        return made
    result = as_kind(made, x.kind)
    if x.mask is not None:
        return result
    if result.mask is not None or result.data.shape != x.data.shape:
        raise refused(f"{name} in place, of another shape")
    x.write(..., result.data)
    return x


@_named("known")
def _known(x: Traced) -> int | None:
    value = x.data.reshape(-1)[0] if x.data.size == 1 else None
    return value.value if isinstance(value, Whole) else None


@_named("equal", "array_equal")
def _equal(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise refused("a comparison up to a tolerance")
    (u, v), library = _operands(x, y)
    if u.data.shape != v.data.shape:
        return False
    claims = list(OPERATIONS["eq"](u, v).data.reshape(-1))
    made = np.empty((), object)
    made[()] = both(*claims) if claims else TRUE
    return Traced(made, BOOL, library)


__all__: list[str] = []
