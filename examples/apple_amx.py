"""Two 32×32 fp16 matrices multiplied on Apple AMX: loads, fma16 and stores spelled out, and what matmul makes of them.

X takes a row of B and Y a column of A, so A is transposed in memory.  One fma16 in matrix mode is an outer product:
lane i of X and lane j of Y meet at row j, column i of D, which is row 2j of Z if D is fp16, and half of rows 2j and
2j + 1 if it is fp32.  Z is zero at first; 32 outer products make D.

    python examples/apple_amx.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmaformal import apple_amx, matmul
from mmaformal.apple import AmxOperand, AmxState, Transfer, Word, disassemble, execute, move

SIZE = 32
ROW = 64  #: bytes of a row of fp16
A, B, D = 0, SIZE * ROW, 2 * SIZE * ROW  #: where in memory the matrices are

#: An instruction: its name, and the 64 bits of its operand.
Step = tuple[str, int]


def product(z_f32: int) -> Iterator[Step]:
    """The instructions that multiply, onto fp16 or fp32."""
    for k in range(SIZE):
        yield "ldx", Transfer(B + ROW * k, register=k % 8).encode()
        yield "ldy", Transfer(A + ROW * k, register=k % 8).encode()
        offset = ROW * (k % 8)
        yield "fma16", AmxOperand(x_offset=offset, y_offset=offset, z_f32=z_f32).encode()
    for j in range(SIZE):
        if z_f32:
            for half in (0, 1):
                yield "stzi", Transfer(D + ROW * (2 * j + half), register=2 * j + half).encode()
        else:
            yield "stz", Transfer(D + ROW * j, register=2 * j).encode()


def run(steps: Iterator[Step], memory: bytes) -> bytes:
    """The memory after the instructions, Z being zero at first."""
    state = AmxState()
    for name, operand in steps:
        if name == "fma16":
            state = execute(state, name, operand)
        else:
            state, memory = move(state, memory, name, operand)
    return memory


def show(steps: Iterator[Step], count: int) -> None:
    """The first instructions, their operands in registers x1, x2, x3."""
    some = [next(steps) for _ in range(count)]
    words = [Word(name, 1 + n % 3).encode() for n, (name, _) in enumerate(some)]
    for line, (_, operand) in zip(disassemble(words), some, strict=True):
        print(f"{line:30}  {operand:#018x}")


def multiply(a: NDArray[np.float16], b: NDArray[np.float16], z_f32: int) -> None:
    memory = np.ascontiguousarray(a.T).tobytes() + b.tobytes() + bytes(2 * SIZE * ROW)
    kind = np.float32 if z_f32 else np.float16
    data = run(product(z_f32), memory)[D : D + SIZE * SIZE * np.dtype(kind).itemsize]
    found = np.frombuffer(data, kind).reshape(SIZE, SIZE)
    expected = matmul(a, b, instruction=apple_amx["fma16.F32" if z_f32 else "fma16"])
    word = np.uint32 if z_f32 else np.uint16
    same = np.count_nonzero(found.view(word) == expected.view(word))
    print(f"onto {np.dtype(kind).name}: {same} of {found.size} elements as matmul has them")


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in "AB")
    show(product(0), 6)
    for f32 in (0, 1):
        multiply(left, right, f32)
