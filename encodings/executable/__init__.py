"""The executable wing: `dot_add` runs a `DotAdd` on lanes (see `blocks`) and returns its trace."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module

from mmaformal.encodings.executable.blocks import AnyStep, Lane, Trace
from mmaformal.spec import DotAdd

_MODULES = {each.name: import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)}

#: The files here that have a `dot_add`, by the names of their algorithms.
_ALGORITHMS: dict[str, Callable[..., Trace[AnyStep]]] = {
    name: module.dot_add for name, module in _MODULES.items() if "dot_add" in vars(module)
}


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[AnyStep]:
    """Run `spec` on lanes: K codes a, K codes b, one c, and `spec.scales` scales of each side.

    Shapes are the caller's responsibility.  The result is `.result` of the trace; the interfaces of each
    step, in the order of the stages, are in its `.steps`.
    """
    run = _ALGORITHMS[spec.parameters.algorithm]
    if spec.product_order:
        order = spec.taken
        return run(spec.in_order, [a[k] for k in order], [b[k] for k in order], c)
    return run(spec, a, b, c, scale_a, scale_b)
