"""A combinational module: ports, and what its outputs are, as bit-vector terms.

The ports of a dot product-add: `a` and `b` hold K codes, code k at bits [k·w, (k+1)·w); `c` one; `scale_a` and
`scale_b` one code per block, if there are scales; `d` is the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.display import ShortRepr, counted, short_text
from mmaformal.encodings import smt
from mmaformal.proof.failure import labelled
from mmaformal.spec import DotAdd

#: The words before the name of a step's interface, in a name such as `smt.steps[0].e_max`.
_STEP = re.compile(r"^steps\[(\d+)\]\.")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]+")


class HardwareError(Exception):
    """A design that cannot be read, or a tool that is missing or fails; one line, with what to do next."""


def reason(error: Exception) -> str:
    """Why a file cannot be read, without its name and a number."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


@dataclass(frozen=True, repr=False)
class Module(ShortRepr):
    """Combinational: every term is over the constants that are the inputs, and those that are undefined."""

    name: str
    inputs: Mapping[str, z3.BitVecRef]
    outputs: Mapping[str, z3.BitVecRef]
    wires: Mapping[str, z3.ExprRef] = field(default_factory=dict)  #: named terms between them
    #: what the design gives no value, each a constant of its own that may be any; keys have spaces in them
    undefined: Mapping[str, z3.BitVecRef] = field(default_factory=dict)

    def __repr__(self) -> str:
        ports = [
            ", ".join(f"{name}[{x.size()}]" for name, x in side.items())
            for side in (self.inputs, self.outputs)
        ]
        return short_text(self, self.name, f"{' → '.join(ports)}, {counted(len(self.wires), 'wire')}")

    @property
    def ports(self) -> dict[str, int]:
        """Bits of each port, inputs first."""
        return {name: term.size() for name, term in (*self.inputs.items(), *self.outputs.items())}


def ports_of(spec: DotAdd) -> dict[str, int]:
    """Bits of each input port of a dot product-add."""
    bits = {"a": spec.k * spec.a_format.storage_bits, "b": spec.k * spec.b_format.storage_bits}
    bits["c"] = spec.c_format.storage_bits
    if spec.scale_format is not None:
        bits |= dict.fromkeys(("scale_a", "scale_b"), spec.scales * spec.scale_format.storage_bits)
    return bits


def codes_at(ports: Mapping[str, z3.BitVecRef], spec: DotAdd) -> Inputs:
    """The codes in the ports."""

    def each(name: str, bits: int) -> tuple[z3.BitVecRef, ...]:
        port = ports[name]
        return tuple(
            z3.Extract(low + bits - 1, low, port) if port.size() > bits else port
            for low in range(0, port.size(), bits)
        )

    scale = spec.scale_format
    return Inputs(
        each("a", spec.a_format.storage_bits),
        each("b", spec.b_format.storage_bits),
        ports["c"],
        each("scale_a", scale.storage_bits) if scale is not None else (),
        each("scale_b", scale.storage_bits) if scale is not None else (),
    )


def with_codes(inputs: Inputs) -> dict[str, z3.BitVecRef]:
    """Return by name what the ports hold of these codes: the other way round."""
    sides = {
        "a": inputs.a,
        "b": inputs.b,
        "c": (inputs.c,),
        "scale_a": inputs.scale_a,
        "scale_b": inputs.scale_b,
    }
    return {
        name: z3.Concat(*reversed(side)) if len(side) > 1 else side[0] for name, side in sides.items() if side
    }


def model_of(spec: DotAdd, name: str) -> Module:
    """The SMT encoding's terms of a model as a module; the interfaces between its stages are the wires.

    The wires are named as the SMT encoding's traces name them: `e_max`, `products_3_exponent`, `total`; with several
    steps, after `step0_`, `step1_`, ….
    """
    codes = symbolic_inputs(spec)
    trace = smt.dot_add(spec, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)
    ports = {port: z3.BitVec(port, bits) for port, bits in ports_of(spec).items()}
    pairs = list(zip(codes.flat(), codes_at(ports, spec).flat(), strict=True))
    wires = {
        wire: z3.substitute(term, *pairs)
        for wire, term in _interfaces(trace, several=len(trace.steps) > 1)
        if not z3.is_bv_value(term)
    }
    return Module(name, ports, {"d": z3.substitute(trace.result, *pairs)}, wires)


def _interfaces(trace: object, several: bool) -> Iterator[tuple[str, z3.ExprRef]]:
    for path, term in labelled("", trace):
        step = _STEP.match(path := path.removeprefix("."))
        if step is None:
            continue
        before = f"step{step[1]}_" if several else ""
        yield before + _NOT_A_NAME.sub("_", path[step.end() :]).strip("_"), term
