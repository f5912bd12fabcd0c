"""Symbolic 64-bit lanes, on which the executable encoding is traced: the very functions that run, as terms.

A lane is an integer with a known range, held as a bit-vector just wide enough for that range, so that the terms of
a trace are no wider than its numbers.  Every operation does two things:

- it computes the range of its result, and with it a narrow term;
- it leaves a *rule*, to be proved: for all operands in their ranges, the operation on 64-bit two's complement does
  not wrap, its result lies in the range computed, and the narrow term is that result.

With its rules proved, a trace says what the 64-bit lanes of NumPy compute, and what Python's integers do: they agree
where nothing wraps.  No range is taken on trust, however it was found; so the ways of finding one may be clever:

- intervals, of the operands alone;
- `where`: a branch counts only for the values for which it is taken, as in `where(x < 0, -x, x)`;
- `(x >> n) << n` lies between 0 and x, and what it leaves out, `x - ((x >> n) << n)`, does too;
- a maximum is not below what it was taken of, so that `e_max - e` is no negative shift amount;
- where all that leaves a wrap possible, the range is guessed from samples that run along with the trace, and the
  rule tells the whole function that the operation stands in, in terms of what came into it.

Where no range within 64 bits, or no shift amount within 0 … 63, is found, a `LaneError` says where.
"""

from __future__ import annotations

from mmaformal.lanes.nodes import LaneOrFlag as LaneOrFlag
from mmaformal.lanes.nodes import LaneRanges as LaneRanges
from mmaformal.lanes.nodes import Sample as Sample
from mmaformal.lanes.nodes import SymbolicFlag as SymbolicFlag
from mmaformal.lanes.nodes import SymbolicLane as SymbolicLane
from mmaformal.lanes.ranges import BITS as BITS
from mmaformal.lanes.ranges import INT64 as INT64
from mmaformal.lanes.ranges import LaneError as LaneError
from mmaformal.lanes.ranges import Range as Range
from mmaformal.lanes.ranges import fit as fit
from mmaformal.lanes.rules import LaneRule as LaneRule
from mmaformal.lanes.tracer import Tracer as Tracer
