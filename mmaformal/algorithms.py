"""Old names: algorithms are in `mmaformal.encodings`, what they share in `mmaformal.spec` and `mmaformal.rounding`."""

from importlib import import_module

from mmaformal.encodings import folders
from mmaformal.renamed import warn


def __getattr__(name: str) -> object:
    places = () if name.startswith("__") else ("rounding", "spec", *(f"encodings.{x}" for x in folders()))
    for place in places:
        value = getattr(import_module(f"mmaformal.{place}"), name, None)
        if value is not None:
            module = getattr(value, "__module__", f"mmaformal.{place}")
            warn(f"mmaformal.algorithms.{name} is {module}.{name} now")
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
