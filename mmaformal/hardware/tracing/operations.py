"""Operations of a program on arrays of values, by the names that NumPy, torch and Python have for them."""

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
from mmaformal.hardware.tracing.context import all_hold, any_hold, denied, known
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
    DType,
    Library,
)
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.traced import (
    OPERATIONS,
    Traced,
    as_kind,
    common_kind,
    each,
    library_of,
    lifted,
)
from mmaformal.hardware.tracing.whole import Integer
from mmaformal.rounding import Rounding

_Split = namedtuple("_Split", ("mantissa", "exponent"))
_Largest = namedtuple("_Largest", ("values", "indices"))


def operation(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


def all_lifted(*values: Any) -> tuple[list[Traced], Library]:
    library = library_of(*values)
    return [lifted(x, library) for x in values], library


def made_of(data: NDArray[np.object_], kind: DType, *of: Traced, library: Library | None = None) -> Traced:
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


def mapped(u: Traced, function: Callable[[Element], Element], kind: DType | None = None) -> Traced:
    """A function of each single value; what it gives is of this kind, or of the same."""
    return made_of(each(function, u.data), kind or u.kind, u, library=u.library)


def paired(
    x: Any, y: Any, function: Callable[[Element, Element, DType], Element], result: DType | None = None
) -> Traced:
    """A function of two single values as ones of the kind that both have in common; it gives `result`, or that."""
    (u, v), library = all_lifted(x, y)
    return _of_kind(u, v, function, common_kind([u.typed, v.typed], library), library, result)


def _of_kind(
    u: Traced,
    v: Traced,
    function: Callable[[Element, Element, DType], Element],
    kind: DType,
    library: Library,
    result: DType | None = None,
) -> Traced:
    """A function of two single values as ones of a kind; it gives `result`, or that."""
    p, q = as_kind(u, kind).data, as_kind(v, kind).data
    return made_of(each(lambda s, t: function(s, t, kind), p, q), result or kind, u, v, library=library)


def _arithmetic(name: str, function: elements.Binary, division: bool = False) -> None:
    def apply(x: Any, y: Any, *, alpha: int = 1) -> Traced:
        if alpha != 1:
            raise refused("alpha= is not followed")
        (u, v), library = all_lifted(x, y)
        kind = common_kind([u.typed, v.typed], library)
        if division:
            kind = library.divided(kind)
        elif kind.letter == "b" and name != "mul":
            kind = library.of_bools() if library is not NUMPY else BOOL
        return _of_kind(u, v, function, kind, library)

    operation(name)(apply)


_arithmetic("add", elements.add)
_arithmetic("sub", elements.subtract)
_arithmetic("mul", elements.multiply)
_arithmetic("div", elements.divide, division=True)
_arithmetic("floor_divide", elements.floor_divide)
_arithmetic("remainder", elements.remainder)
for _name in ("and", "or", "xor"):
    _arithmetic(f"bitwise_{_name}", functools.partial(elements.bitwise, _name))


def _bitwise_on_claims(name: str) -> None:
    plain, function = OPERATIONS[f"bitwise_{name}"], functools.partial(elements.bitwise, name)

    def logical(x: Any, y: Any) -> Traced:
        (u, v), library = all_lifted(x, y)
        return _of_kind(u, v, function, BOOL, library)

    def apply(x: Any, y: Any) -> Any:
        (u, v), _ = all_lifted(x, y)
        return (logical if u.kind == BOOL and v.kind == BOOL else plain)(x, y)

    operation(f"bitwise_{name}", f"__{name}__")(apply)

    operation(f"logical_{name}")(logical)


for _name in ("and", "or", "xor"):
    _bitwise_on_claims(_name)


def _shifting(name: str, function: Callable[..., Element]) -> None:
    def apply(x: Any, y: Any) -> Traced:
        (u, v), library = all_lifted(x, y)
        if u.kind.is_float or v.kind.is_float:
            raise TypeError("floating-point numbers are not shifted")
        return paired(x, y, lambda s, t, kind: function(s, t, kind, library.name))

    operation(name)(apply)


_shifting("left_shift", elements.shift_left)
_shifting("right_shift", elements.shift_right)


def _comparing(name: str, function: Callable[[Element, Element], z3.BoolRef]) -> None:
    def apply(x: Any, y: Any) -> Any:
        if x is None or y is None or isinstance(x, str) or isinstance(y, str):
            return name == "ne"
        (u, v), library = all_lifted(x, y)
        kind = common_kind([u.typed, v.typed], library)
        if kind == BOOL and name not in ("eq", "ne"):
            kind = KINDS["uint8"]
        return _of_kind(u, v, lambda s, t, kind: function(s, t), kind, library, BOOL)

    operation(name)(apply)


def _not_above(x: Element, y: Element) -> z3.BoolRef:
    if isinstance(x, Floating) and isinstance(y, Floating):
        return any_hold(elements.is_less(x, y), elements.is_equal(x, y))
    return denied(elements.is_less(y, x))


_comparing("lt", elements.is_less)
_comparing("gt", lambda x, y: elements.is_less(y, x))
_comparing("le", _not_above)
_comparing("ge", lambda x, y: _not_above(y, x))
_comparing("eq", elements.is_equal)
_comparing("ne", lambda x, y: denied(elements.is_equal(x, y)))


def _unary(function: Callable[[Element, DType], Element], *names: str, result: DType | None = None) -> None:
    def apply(x: Any) -> Traced:
        u = lifted(x)
        return mapped(u, lambda s: function(s, u.kind), result)

    operation(*names)(apply)


_unary(elements.negative, "neg")
_unary(elements.absolute, "abs")
_unary(lambda x, kind: x, "pos")
_unary(lambda x, kind: elements.integral(x, Rounding.RZ), "trunc", "fix")
_unary(lambda x, kind: elements.integral(x, Rounding.RD), "floor")
_unary(lambda x, kind: elements.integral(x, Rounding.RU), "ceil")


def _flag(x: Element, name: str) -> z3.BoolRef:
    if not isinstance(x, Floating):
        return z3.BoolVal(name == "finite")
    if name == "finite":
        return denied(x.special)
    return x.nan if name == "nan" else all_hold(x.infinite, denied(x.nan))


_unary(lambda x, kind: _flag(x, "nan"), "isnan", result=BOOL)
_unary(lambda x, kind: _flag(x, "inf"), "isinf", result=BOOL)
_unary(lambda x, kind: _flag(x, "finite"), "isfinite", result=BOOL)
_unary(
    lambda x, kind: x.is_minus if isinstance(x, Floating) else elements.is_less(integer_of(x), Integer.of(0)),
    "signbit",
    result=BOOL,
)
_unary(lambda x, kind: denied(denied(equal_zero(x))), "logical_not", result=BOOL)


def integer_of(x: Element) -> Integer:
    return (
        elements.of_claim(x) if isinstance(x, z3.BoolRef) else x if isinstance(x, Integer) else Integer.of(0)
    )


@operation("bitwise_not", "__invert__")
def _bitwise_not(x: Any) -> Traced:
    u = lifted(x)

    def one(value: Element) -> Element:
        if isinstance(value, z3.BoolRef):
            return denied(value)
        assert isinstance(value, Integer)
        if u.kind.letter == "u":
            assert u.kind.range is not None
            return -value + u.kind.range[1]
        return -value - 1

    return mapped(u, one)


@operation("round")
def _round(x: Any, decimals: int = 0) -> Traced:
    if decimals:
        raise refused("round to decimals")
    return mapped(lifted(x), lambda s: elements.integral(s, Rounding.RNE))


def _to_int(rounding: Rounding) -> Callable[[Any], Traced]:
    def apply(x: Any) -> Traced:
        u = lifted(x)
        return mapped(u, lambda s: elements.cast(elements.integral(s, rounding), u.kind, INT, u.library), INT)

    return apply


operation("round_to_int")(_to_int(Rounding.RNE))
operation("trunc_to_int")(_to_int(Rounding.RZ))
operation("floor_to_int")(_to_int(Rounding.RD))
operation("ceil_to_int")(_to_int(Rounding.RU))


@operation("numpy_of", "array_of", "asarray_of")
def _numpy_of(x: Any, dtype: Any = None) -> Traced:
    """Values as an array of NumPy's."""
    return _in_library(x, dtype, NUMPY)


@operation("tensor_of", "as_tensor_of")
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


@operation("sign")
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
        less = elements.is_less(value, Integer.of(0))
        return chosen_element(less, minus, chosen_element(equal_zero(value), zero, one))

    return mapped(u, of)


@operation("copysign")
def _copysign(x: Any, y: Any) -> Traced:
    def one(value: Element, sign: Element, kind: DType) -> Element:
        if not isinstance(value, Floating) or not isinstance(sign, Floating):
            raise refused("copysign of what is no floating-point number")
        return replace(value, sign=sign.shown_sign, code=None, total=None, plus_zero=False)

    return paired(x, y, one)


@operation("frexp")
def _frexp(x: Any) -> Any:
    u = lifted(x)
    pairs = [elements.frexp(value) for value in u.data.reshape(-1)]
    made = [np.empty(u.data.shape, object) for _ in range(2)]
    for i in range(2):
        made[i].reshape(-1)[:] = [pair[i] for pair in pairs]
    kind = INT if u.library is PYTHON else KINDS["int32"]
    return _Split(
        made_of(made[0], u.kind, u, library=u.library), made_of(made[1], kind, u, library=u.library)
    )


def _floating_kind(u: Traced) -> DType:
    """The kind of what a function of real numbers gives."""
    return u.kind if u.kind.is_float else u.library.divided(u.kind)


@operation("exp2")
def _exp2(x: Any) -> Traced:
    u = lifted(x)
    kind = _floating_kind(u)
    return mapped(u, lambda s: elements.exp2(s, kind), kind)


@operation("ldexp")
def _ldexp(x: Any, e: Any) -> Any:
    (u, v), library = all_lifted(x, e)
    if u.library is PYTHON and library is PYTHON:
        power = each(lambda s: elements.exp2(s, DType("wide", "f", 4096, _WIDE)), v.data)
        made = each(lambda s, t: elements.multiply(s, t, FLOAT), as_kind(u, FLOAT).data, power)
        return made_of(made, FLOAT, u, v, library=library)
    kind = _floating_kind(u)
    power = each(lambda s: elements.exp2(s, kind), v.data)
    return made_of(
        each(lambda s, t: elements.multiply(s, t, kind), as_kind(u, kind).data, power),
        kind,
        u,
        v,
        library=library,
    )


_WIDE = KINDS["float64"].fmt


@operation("pow")
def _pow(x: Any, y: Any) -> Traced:
    (u, v), library = all_lifted(x, y)
    base = u.data.reshape(-1)[0] if u.data.size == 1 else None
    two = isinstance(base, Integer) and base.value == 2
    two = two or (
        isinstance(base, Floating) and base.power and base.exponent.value == 1 and z3.is_false(base.negated)
    )
    if two:
        if not u.kind.is_float and not v.kind.is_float:
            one = 1 if library is PYTHON else u.with_data(each(lambda s: Integer.of(1), u.data))
            return lifted(OPERATIONS["left_shift"](one, v))
        kind = common_kind([u.typed, v.typed], library)
        return made_of(each(lambda s: elements.exp2(s, kind), v.data), kind, v, library=library)
    exponent = v.data.reshape(-1)[0] if v.data.size == 1 else None
    if isinstance(exponent, Integer) and exponent.value in (1, 2, 3):
        made: Any = u
        for _ in range(exponent.value - 1):
            made = OPERATIONS["mul"](made, u)
        assert isinstance(made, Traced)
        return made
    raise refused("a power whose base is not 2, and whose exponent is not 1, 2 or 3")


@operation("bit_length")
def _bit_length(x: Any) -> Traced:
    return mapped(lifted(x), elements.bit_length, INT)


@operation("where")
def _where(condition: Any, x: Any, y: Any) -> Traced:
    (c, u, v), library = all_lifted(condition, x, y)
    kind = common_kind([u.typed, v.typed], library)
    made = each(chosen_element, as_kind(c, BOOL).data, as_kind(u, kind).data, as_kind(v, kind).data)
    return made_of(made, kind, c, u, v, library=library)


@operation("masked_fill")
def _masked_fill(x: Any, mask: Any, value: Any) -> Traced:
    u = lifted(x)
    v = as_kind(lifted(value, u.library), u.kind)
    return made_of(each(chosen_element, lifted(mask).data, v.data, u.data), u.kind, u, library=u.library)


def _extreme(name: str, function: Callable[[Element, Element], Element]) -> None:
    operation(name)(lambda x, y: paired(x, y, lambda s, t, kind: function(s, t)))


_extreme("maximum", elements.larger)
_extreme("minimum", elements.smaller)


@operation("clamp", "clip")
def _clamp(x: Any, min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    made = x if low is None else OPERATIONS["maximum"](x, low)
    return made if high is None else OPERATIONS["minimum"](made, high)


@operation("nan_to_num")
def _nan_to_num(x: Any, nan: float = 0.0) -> Traced:
    u = lifted(x)
    value = elements.cast(elements.constant(float(nan)), FLOAT, u.kind, u.library)
    if any(isinstance(s, Floating) and known(s.infinite) is not False for s in u.data.reshape(-1)):
        raise refused("nan_to_num of what may be infinite")
    return mapped(u, lambda s: chosen_element(_flag(s, "nan"), value, s))


# ---- reductions ----


def _reduced(
    x: Traced, axis: Any, keep: bool, function: Callable[[Sequence[Element]], Element], kind: DType
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


@operation("sum")
def _sum(x: Any, *given: Any, **kwargs: Any) -> Traced:
    u, dtype = lifted(x), kwargs.pop("dtype", None)
    axis, keep = _axis(kwargs, given)
    kind = u.kind if dtype is None else u.library.kind(dtype)
    if dtype is None and not kind.is_float and (kind.bits or 64) < 64:
        kind = KINDS["uint64"] if kind.letter == "u" and u.library is NUMPY else KINDS["int64"]
    if u.mask is not None:
        raise refused("a sum of values taken with a mask: use where")
    u = as_kind(u, kind)
    return _reduced(u, axis, keep, lambda every: elements.added_up(every, kind, u.library.name), kind)


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

    operation(name)(apply)

    def alone(x: Any, *given: Any, **kwargs: Any) -> Any:
        made = apply(x, *given, **kwargs)
        return made.values if isinstance(made, _Largest) else made

    operation(f"a{name}")(alone)


class _NoIndices:
    """A stand-in for the indices of maxima, which are not followed."""

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
            data = each(
                lambda m, s: all_hold(m, s) if name == "any" else any_hold(denied(m), s), u.mask, data
            )
        return _reduced(Traced(data, BOOL, u.library), axis, keep, lambda every: join(*every), BOOL)

    operation(name)(apply)


_quantified("any", any_hold)
_quantified("all", all_hold)


@operation("count_nonzero")
def _count(x: Any, *given: Any, **kwargs: Any) -> Traced:
    u = as_kind(lifted(x), BOOL)
    made = OPERATIONS["sum"](as_kind(u, KINDS["int64"]), *given, **kwargs)
    assert isinstance(made, Traced)
    return made
