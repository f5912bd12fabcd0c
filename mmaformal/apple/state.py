"""The state that instructions of Apple AMX act on."""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.encodings.amx import executable as amx

SIZES = {"x": amx.POOL, "y": amx.POOL, "z": amx.ROWS * amx.ROWS}


@dataclass(frozen=True, repr=False)
class AmxState:
    """X and Y, pools of eight registers of 64 bytes, and Z, 64 rows of 64.  Raises ValueError for another size."""

    x: bytes = bytes(SIZES["x"])
    y: bytes = bytes(SIZES["y"])
    z: bytes = bytes(SIZES["z"])

    def __post_init__(self) -> None:
        for name, size in SIZES.items():
            value = getattr(self, name)
            if not isinstance(value, (bytes, bytearray)) or len(value) != size:
                what = f"{len(value)}" if isinstance(value, (bytes, bytearray)) else type(value).__name__
                raise ValueError(f"{name} has {size} bytes, not {what}")

    def row(self, number: int) -> bytes:
        """A row of Z, 64 bytes."""
        return self.z[64 * number : 64 * number + 64]

    def __repr__(self) -> str:
        told = [
            f"{name}: {sum(map(bool, getattr(self, name)))} of {size} bytes" for name, size in SIZES.items()
        ]
        return f"<AmxState not zero in {', '.join(told)}>"
