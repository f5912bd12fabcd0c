"""The SMT encoding: `dot_add` builds the bit-vector terms of a `DotAdd` and returns their trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mmaformal.encodings import part
from mmaformal.encodings.smt import signs
from mmaformal.encodings.smt.blocks import BitVec, Trace
from mmaformal.spec import DotAdd


class _ByName(dict[str, Callable[..., Trace[Any]]]):
    """The `dot_add` of each algorithm, imported from the file `smt` of its folder when it is first asked for."""

    def __missing__(self, name: str) -> Callable[..., Trace[Any]]:
        module = part(name, "smt")
        if module is None:
            raise KeyError(name)
        return self.setdefault(name, module.dot_add)


_ALGORITHMS = _ByName()


def dot_add(
    spec: DotAdd,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[BitVec] = (),
    scale_b: Sequence[BitVec] = (),
) -> Trace[Any]:
    """The terms of `spec` over K codes `a`, K codes `b` and one `c`, each as wide as its format's storage; with
    block scales, K / scale_block codes `scale_a` and as many `scale_b`.

    `.steps` are the interfaces between the stages (each algorithm's own), `.result` the code of d.  Where a
    NaN's payload is unspecified (`spec.nan_is_canonical` is false) it is one fixed quiet NaN.
    Raises ValueError for the wrong number of codes.
    """
    counts = {"a": spec.k, "b": spec.k, "scale_a": spec.scales, "scale_b": spec.scales}
    for (name, wanted), given in zip(counts.items(), (a, b, scale_a, scale_b), strict=True):
        if len(given) != wanted:
            raise ValueError(f"{spec.types}, K = {spec.k}, needs {wanted} codes {name}, not {len(given)}")
    if spec.is_signed:
        return signs.dot_add(spec, a, b, c, scale_a, scale_b)
    if spec.product_order:  # the n-th product that is taken
        order = spec.product_order
        places = [n - n % len(order) + order[n % len(order)] for n in range(spec.k)]
        a, b, spec = [a[place] for place in places], [b[place] for place in places], spec.in_order
    scales = (scale_a, scale_b) if spec.scale_format is not None else ()
    return _ALGORITHMS[spec.parameters.algorithm](spec, a, b, c, *scales)


__all__ = ["Trace", "dot_add"]
