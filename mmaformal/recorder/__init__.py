"""Recording what a machine's own unit gives: `record`, `write_program` and `from_outputs`; products by a library."""

from mmaformal.recorder.library import record_product
from mmaformal.recorder.program import RecorderError
from mmaformal.recorder.units import Carried, from_outputs, program_of, record, write_program

__all__ = [
    "Carried",
    "RecorderError",
    "from_outputs",
    "program_of",
    "record",
    "record_product",
    "write_program",
]
