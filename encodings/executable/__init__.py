"""The executable encoding: `dot_add` runs a `DotAdd` on lanes (see `blocks`) and returns its trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmaformal.encodings import part
from mmaformal.encodings.executable import signs
from mmaformal.encodings.executable.blocks import AnyExecutableStep, Lane, Trace
from mmaformal.spec import DotAdd


class _Found(dict[str, Callable[..., Trace[AnyExecutableStep]]]):
    """For each algorithm that was run, the `dot_add` of its folder's `executable`."""

    def __missing__(self, name: str) -> Callable[..., Trace[AnyExecutableStep]]:
        if (there := part(name, "executable")) is None:
            raise KeyError(name)
        self[name] = there.dot_add
        return self[name]


_ALGORITHMS = _Found()


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[AnyExecutableStep]:
    """Run `spec` on lanes: K codes a, K codes b, one c, and `spec.scales` scales of each side.

    Shapes are the caller's responsibility.  The result is `.result` of the trace; the interfaces of each
    step, in the order of the stages, are in its `.steps`.
    """
    if spec.is_signed:
        return signs.dot_add(spec, a, b, c, scale_a, scale_b)
    run = _ALGORITHMS[spec.parameters.algorithm]
    if spec.product_order:
        order = spec.taken
        return run(spec.in_order, [a[k] for k in order], [b[k] for k in order], c)
    return run(spec, a, b, c, scale_a, scale_b)
