"""The shapes, places and types of arrays of values: what a program may do with them, by the names of the libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.hardware.tracing import elements
from mmaformal.hardware.tracing.context import TRUE, all_hold, known
from mmaformal.hardware.tracing.elements import Element, chosen_element
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
    torch,
)
from mmaformal.hardware.tracing.operations import all_lifted, integer_of, made_of, operation
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.traced import (
    OPERATIONS,
    Traced,
    as_kind,
    claim_of,
    common_kind,
    each,
    library_of,
    lifted,
)
from mmaformal.hardware.tracing.whole import Integer

# ---- structure ----


def _shaped(x: Traced, data: NDArray[np.object_]) -> Traced:
    if x.mask is not None:
        raise refused("the shape of what was taken with a mask")
    found = Traced(data, x.kind, x.library, family=x.family)
    x.family.append(found)
    return found


def _structural(function: Callable[..., NDArray[np.object_]], *names: str) -> None:
    def apply(x: Any, *args: Any, **kwargs: Any) -> Traced:
        u = lifted(x, library_of(x))
        return _shaped(u, function(u.data, *args, **kwargs))

    operation(*names)(apply)


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


@operation("transpose")
def _transpose(x: Any, *axes: Any) -> Traced:
    u = lifted(x)
    if u.library is TORCH:
        return _shaped(u, np.swapaxes(u.data, *axes))
    return _shaped(u, _permuted(u.data, *axes))


@operation("view")
def _view(x: Any, *given: Any, **kwargs: Any) -> Any:
    """Another shape, or the same bits as another type."""
    u = lifted(x)
    target = given[0] if given else next(iter(kwargs.values()))
    if isinstance(target, int | tuple | list) or "Size" in type(target).__name__:
        return _shaped(u, u.data.reshape(_sizes(given)))
    kind = target if isinstance(target, DType) else u.library.kind(target)
    if kind == u.kind:
        return u
    if u.kind.bits != kind.bits or BOOL in (u.kind, kind):
        raise refused(f"a view of {u.kind.name} as {kind.name}, of other sizes")
    data = each(lambda s: elements.of_code(elements.element_code(s, u.kind), kind), u.data)
    made = Traced(data, kind, u.library, u.mask, family=u.family)
    u.family.append(made)
    return made


@operation("getitem", "__getitem__")
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

    data = each(lambda m, s: implied(m, s, True) if isinstance(s, Integer) else s, mask.data, u.data)
    return Traced(data, u.kind, u.library, mask.data)


def _looked_up(u: Traced, index: Traced) -> Traced:
    """Entries of a table."""
    size = u.data.shape[0]
    rows = [u.data[i] for i in range(size)]

    def one(place: Element) -> Any:
        value = integer_of(place)
        if value.low < 0 or value.high >= size:
            raise refused(f"an index that may be {value.low} to {value.high}, of {size} entries")
        return value

    places = each(one, index.data)
    if u.data.ndim > 1:
        raise refused("rows of a table, by an index that depends on the inputs")
    made = each(lambda place: _entry(rows, place), places)
    return Traced(made, u.kind, u.library, index.mask)


def _entry(rows: Sequence[Element], place: Integer) -> Element:
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
        _mux(signs, index), term, Integer.of(low), low, high, max(x.digits for x in some), term == 0
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


@operation("setitem", "__setitem__")
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


def _sequence(parts: Any) -> tuple[list[Traced], Library, DType]:
    given = list(parts)
    library = library_of(given)
    every = [lifted(x, library) for x in given]
    return every, library, common_kind([x.typed for x in every], library)


@operation("cat")
def _cat(parts: Any, dim: int = 0, axis: int | None = None) -> Traced:
    every, library, kind = _sequence(parts)
    data = np.concatenate([as_kind(x, kind).data for x in every], axis=dim if axis is None else axis)
    return made_of(data, kind, *every, library=library)


@operation("stack")
def _stack(parts: Any, dim: int = 0, axis: int | None = None) -> Traced:
    every, library, kind = _sequence(parts)
    data = np.stack([as_kind(x, kind).data for x in every], axis=dim if axis is None else axis)
    return made_of(data, kind, *every, library=library)


@operation("unbind")
def _unbind(x: Any, dim: int = 0) -> tuple[Traced, ...]:
    u = lifted(x)
    return tuple(_shaped(u, np.take(u.data, i, axis=dim)) for i in range(u.data.shape[dim]))


@operation("repeat_interleave", "repeat")
def _repeat(x: Any, repeats: int, dim: int | None = None, axis: int | None = None) -> Traced:
    u = lifted(x)
    along = dim if axis is None else axis
    if u.library is TORCH and along is None:
        raise refused("repeat of a tensor")
    return made_of(np.repeat(u.data, repeats, axis=along), u.kind, u, library=u.library)


@operation("array", "asarray", "as_tensor", "tensor", "ascontiguousarray")
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


operation("zeros_like", "empty_like", "new_zeros")(_like(0))
operation("ones_like")(_like(1))
operation("full_like")(_like(0))


# ---- types ----


@operation("to", "astype", "type")
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
    @operation(name)
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


@operation("contiguous", "detach", "cpu", "item", "tolist")
def _itself(x: Any) -> Traced:
    return lifted(x)


@operation("clone", "copy")
def _clone(x: Any, *args: Any, **kwargs: Any) -> Traced:
    u = lifted(x)
    return made_of(u.data.copy(), u.kind, u, library=u.library)


@operation("shape")
def _shape(x: Traced) -> Any:
    if x.mask is not None:
        raise refused("the shape of what was taken with a mask")
    return torch().Size(x.data.shape) if x.library is TORCH else x.data.shape


@operation("size")
def _size(x: Traced, dim: int | None = None) -> Any:
    if x.library is NUMPY:
        return x.data.size
    return _shape(x) if dim is None else _shape(x)[dim]


@operation("dtype")
def _dtype(x: Traced) -> Any:
    return x.library.dtype(x.kind)


operation("ndim", "dim")(lambda x: x.data.ndim)
operation("numel")(lambda x: x.data.size)
operation("itemsize", "element_size")(lambda x: (x.kind.bits or 64) // 8)
operation("device")(lambda x: torch().device("cpu"))
operation("is_cuda")(lambda x: False)
operation("is_floating_point")(lambda x: x.kind.is_float)
operation("truth")(lambda x: claim_of(x))
operation("real")(lambda x: x)


@operation("in_place")
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


@operation("known")
def _known(x: Traced) -> int | None:
    value = x.data.reshape(-1)[0] if x.data.size == 1 else None
    return value.value if isinstance(value, Integer) else None


@operation("equal", "array_equal")
def _equal(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise refused("a comparison up to a tolerance")
    (u, v), library = all_lifted(x, y)
    if u.data.shape != v.data.shape:
        return False
    claims = list(OPERATIONS["eq"](u, v).data.reshape(-1))
    made = np.empty((), object)
    made[()] = all_hold(*claims) if claims else TRUE
    return Traced(made, BOOL, library)


__all__: list[str] = []
