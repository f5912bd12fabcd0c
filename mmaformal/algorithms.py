"""Old names: algorithms are in `mmaformal.encodings`, what they share in `mmaformal.spec` and `mmaformal.rounding`."""

from importlib import import_module

from mmaformal.encodings import folders
from mmaformal.renamed import warn


def __getattr__(name: str) -> object:
    for place in ("rounding", "spec", *(f"encodings.{each}" for each in folders())):
        if (
            name.startswith("__")
            or (value := getattr(import_module(f"mmaformal.{place}"), name, None)) is None
        ):
            continue
        warn(
            f"mmaformal.algorithms.{name} is {getattr(value, '__module__', f'mmaformal.{place}')}.{name} now"
        )
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
