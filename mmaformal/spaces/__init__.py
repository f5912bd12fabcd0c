"""For each algorithm, the parameters that an unknown unit might have: functions of `space` in its folder.

- `choices(types, k)`: parameters that differ on ordinary numbers; what concerns only zeros and special values has one
  value each.
- `details(parameters, types)`: the same parameters with every value of the rest, the ones likely on ordinary numbers
  first.
- `sure(products, c)` (optional): by the exponents of nonzero finite products (cases × K) and of c, the cases on which
  details do not show, but in the sign of a zero; in default of it, all.
- `ORDERED` (optional): whether which products form a step matters, so that other orders of K are tried.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from mmaformal import encodings
from mmaformal.encodings import part, with_part
from mmaformal.rounding import Rounding
from mmaformal.spaces.common import Types, orders
from mmaformal.spec import DotAdd, Parameters, signs_of


def _space(name: str) -> ModuleType:
    """The space of an algorithm, or a design here; raises ModuleNotFoundError where it has none."""
    return part(name, "space") or import_module(f"{__name__}.{name}")


def algorithms() -> list[str]:
    """The algorithms that have a space and that units are known to have, by name."""
    return [name for name in with_part("space") if not _parameters(name).is_design]


def design_spaces() -> list[str]:
    """The other spaces, by name, those that are of no algorithm's folder too: datapaths that no unit is known to be."""
    here = (each.name for each in pkgutil.iter_modules(__path__) if each.name != "common")
    return sorted((*(name for name in with_part("space") if _parameters(name).is_design), *here))


def _parameters(algorithm: str) -> type[Parameters]:
    """The class of an algorithm's parameters."""
    classes = vars(import_module(f"{encodings.__name__}.{algorithm}")).values()
    found: type[Parameters] = next(x for x in classes if getattr(x, "algorithm", "") == algorithm)
    return found


def models(
    types: Types, k: int, algorithm: str, part: int = 0, parts: int = 1, *, ordered: bool = True
) -> Iterator[DotAdd]:
    """Every model of one algorithm, but for details, of k products of these types; or one part of several of them.

    ordered: with other orders of the products too.
    """
    module = _space(algorithm)
    taken: dict[int, list[tuple[int, ...]]] = {}  #: orders, by the products of a step
    own = islice(_choices(types, k, algorithm), part, None, parts) if parts > 1 else module.choices(types, k)
    for parameters in own:
        yield from _specs(types, k, parameters, ())
        step, whole = (
            parameters.step_products,
            parameters.last_rounding.fraction_bits == types.d.fraction_bits,
        )
        if ordered and getattr(module, "ORDERED", False) and step < k and whole:
            if step not in taken:
                taken[step] = list(orders(k, step))
            for order in taken[step]:
                yield from _specs(types, k, parameters, order)


@lru_cache(maxsize=32)
def _choices(types: Types, k: int, algorithm: str) -> tuple[Parameters, ...]:
    """All at once: parts are taken one after another, and most of the work is to make what they leave out."""
    return tuple(_space(algorithm).choices(types, k))


def details(spec: DotAdd) -> Iterator[DotAdd]:
    """The model with everything that it could do with zeros and special values; itself first."""
    yield spec
    types, module = Types.of(spec), _space(spec.parameters.algorithm)
    own = module.details(spec.parameters, types) if hasattr(module, "details") else [spec.parameters]
    for parameters in own:
        for each in _specs(types, spec.k, parameters, spec.product_order):
            yield from (signed for signed in _signed_as(each, spec) if signed != spec)


def _signed_as(each: DotAdd, spec: DotAdd) -> Iterator[DotAdd]:
    """A model with every change of signs that gives its exact sum the signs that another's has."""
    if not spec.is_signed and each.product_sign == spec.product_sign:
        yield each
        return
    if spec.parameters.last_rounding.rounding in (Rounding.RD, Rounding.RU):  # x and −x are not rounded alike
        yield each.replace(negated=spec.negated, reads_c=spec.reads_c)
        return
    wanted = spec.product_sign, spec.c_sign
    for negated in ("", "a", "cd", "c", "d", "ac") if spec.reads_c else ("", "a", "d"):
        if signs_of(each.parameters, negated, spec.reads_c) != wanted:
            continue
        try:
            signed = each.replace(negated=negated, reads_c=spec.reads_c)
        except ValueError:
            continue
        yield signed


def sure(algorithm: str, products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say for which cases, whose inputs are neither zero nor special, details of an algorithm do not show."""
    module = _space(algorithm)
    return np.asarray(module.sure(products, c) if hasattr(module, "sure") else np.ones(len(c), np.bool_))


def variants(spec: DotAdd) -> Iterator[tuple[str, DotAdd]]:
    """The models that differ from one in a single parameter, named, or in the order of its products; none of an
    algorithm without a space."""
    if part(spec.parameters.algorithm, "space") is None:
        return
    types, parameters = Types.of(spec), spec.parameters
    module = _space(parameters.algorithm)
    near = [parameters, *module.choices(types, spec.k)]
    if hasattr(module, "details"):
        near += module.details(parameters, types)
    for name in parameters:
        for value in dict.fromkeys(each[name] for each in near):
            if value != parameters[name]:
                yield from ((name, each) for each in _changed(spec, name, value))
    step = parameters.step_products
    if getattr(module, "ORDERED", False) and step < spec.k and spec.scale_format is None:
        natural = tuple(range(spec.k))
        for order in (natural, *orders(spec.k, step)):
            for each in _specs(types, spec.k, parameters, order):
                if each.product_order != spec.product_order:
                    yield "product_order", each


def _changed(spec: DotAdd, name: str, value: object) -> Iterator[DotAdd]:
    """With another value of a parameter, if that makes sense."""
    try:
        yield spec.replace(**{name: value})
    except ValueError:
        return


def _specs(types: Types, k: int, parameters: Parameters, order: tuple[int, ...]) -> Iterator[DotAdd]:
    """The model, if the encodings hold it."""
    try:
        yield types.model(k, parameters, order)
    except ValueError:
        return
