"""`wgmma.mma_async` for one row: a warpgroup with A in registers and B in shared memory.

Sources: PTX ISA, chapter "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": "Register Fragments"
of each shape, "Shared Memory Matrix Layout" (no swizzling: core matrices of 8 rows of 16 bytes, each contiguous) and
"Matrix-descriptor format".
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp16, fp32, tf32
from mmaformal.instruction import Instruction
from mmaformal.mma import A_FRAGMENTS, REGISTERS, FragmentRegisters

_PTX = {fp16: "f16", bf16: "bf16", tf32: "tf32", e4m3: "e4m3", e5m2: "e5m2", fp32: "f32"}
#: Bytes of a core matrix: 8 rows of 16.
_CORE = 8 * 16


@dataclass(frozen=True, repr=False)
class Wgmma(ShortRepr):
    """One instruction of PTX; m is 64."""

    n: int
    k: int
    a: Format
    b: Format
    d: Format  #: and of c

    @property
    def ptx(self) -> str:
        types = ".".join(_PTX[each] for each in (self.d, self.a, self.b))
        return f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}.{types}"

    @property
    def flags(self) -> str:
        """The immediates after scale-d: the signs of A and B, and, of 16 bits, that B is not transposed."""
        return "1, 1, 0" if self.a.word_bits == 16 else "1, 1"


def wgmma_of(instruction: Instruction) -> Wgmma | None:
    """The `wgmma` that an instruction, or each link of this chain, is, going by its names; None if it is none."""
    named = instruction.name.upper().startswith(
        ("HGMMA.", "QGMMA.")
    )  # a chain, and a hypothetical one, have no other
    if not named and not any(name.startswith("wgmma.") for name in instruction.aliases):
        return None
    spec = instruction.spec
    return Wgmma(instruction.n, spec.k // instruction.issues, spec.a_format, spec.b_format, spec.d_format)


def wgmma_source(unit: Wgmma) -> str:
    """The kernel that computes rows[blockIdx.x] by a block of 128 threads, at element (at_i, at_j)."""
    a, d = REGISTERS[unit.a.name], REGISTERS[unit.d.name]
    a_count, d_count = 64 * unit.k // 128, 64 * unit.n // 128
    a_registers, d_registers = a_count // a.per_register, d_count // d.per_register
    operands = iter(range(d_registers + a_registers + 1))
    d_list, a_list = (
        "{" + ", ".join(f"%{next(operands)}" for _ in range(count)) + "}"
        for count in (d_registers, a_registers)
    )
    word = unit.b.word_bits // 8
    of_a, of_d = A_FRAGMENTS[a.per_register], A_FRAGMENTS[2]  # of D as of A of 16 bits, whatever its type
    return _KERNEL.substitute(
        ptx=unit.ptx,
        n=unit.n,
        word=word,
        b_type=f"{unit.b.word}_t",
        a_row=of_a.row,
        a_col=of_a.col,
        d_row=of_d.row,
        d_col=of_d.col,
        a=f"{a.type} a[{a_registers}] = {{}}",
        a_count=a_count,
        load_a=a.load("a", "a_row(thread, i) == at_i ? row.a[a_col(thread & 31, i)] : 0"),
        d=f"{d.type} d[{d_registers}] = {{}}",
        d_count=d_count,
        load_c=d.load("d", "d_row(thread, i) == at_i && d_col(thread & 31, i) == at_j ? row.c : 0"),
        store_d=d.store("d"),
        operands=f"{d_list}, {a_list}, %{next(operands)}",
        flags=unit.flags,
        outputs=_constraints("d", d, d_registers, "+"),
        inputs=_constraints("a", a, a_registers, ""),
        leading=_CORE,
        stride=_CORE * unit.k * word // 16,
    )


def _constraints(name: str, registers: FragmentRegisters, count: int, mode: str) -> str:
    texts = [f'"{mode}{registers.constraint}"({name}[{r}])' for r in range(count)]
    return (",\n" + " " * 19).join(", ".join(texts[r : r + 4]) for r in range(0, count, 4))


_KERNEL = Template("""\
// $ptx
// PTX ISA: "Register Fragments", "Shared Memory Matrix Layout", "Matrix-descriptor format".
enum { M = 64, N = $n, WORD = $word };
enum { LEADING = $leading, STRIDE = $stride };  // bytes between core matrices: along K, and along N

// Row and column of the i-th element of A, or of C and D, that a thread holds; each warp has 16 rows.
__device__ int a_row(int thread, int i) { const int lane = thread & 31; return $a_row + 16 * (thread >> 5); }
__device__ int a_col(int lane, int i) { return $a_col; }
__device__ int d_row(int thread, int i) { const int lane = thread & 31; return $d_row + 16 * (thread >> 5); }
__device__ int d_col(int lane, int i) { return $d_col; }

// Where element (k, n) of B begins: in core matrices of 8 n of 16 bytes of k each.
__device__ int b_byte(int k, int n) {
    return n / 8 * STRIDE + k * WORD / 16 * LEADING + n % 8 * 16 + k * WORD % 16;
}

__global__ void kernel(struct Row *rows, int *ran) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000 && defined(__CUDA_ARCH_FEAT_SM90_ALL)
    alignas(128) __shared__ unsigned char B[N * K * WORD];
    struct Row &row = rows[blockIdx.x];
    const int thread = threadIdx.x, at_i = blockIdx.x % M, at_j = blockIdx.x / M % N;
    for (int x = thread; x < N * K; x += 128)
        *reinterpret_cast<$b_type *>(B + b_byte(x % K, x / K)) = x / K == at_j ? row.b[x % K] : 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // what was written is seen by wgmma
    __syncthreads();
    $a;
    for (int i = 0; i < $a_count; ++i)
        $load_a
    $d;
    for (int i = 0; i < $d_count; ++i)
        $load_c
    const uint64_t start = __cvta_generic_to_shared(B);
    const uint64_t b = (start >> 4 & 0x3FFF) | uint64_t(LEADING >> 4) << 16 | uint64_t(STRIDE >> 4) << 32;
    asm volatile("{\\n"
                 ".reg .pred add;\\n"
                 "setp.eq.u32 add, 0, 0;\\n"
                 "wgmma.fence.sync.aligned;\\n"
                 "$ptx "
                 "$operands, add, $flags;\\n"
                 "wgmma.commit_group.sync.aligned;\\n"
                 "wgmma.wait_group.sync.aligned 0;\\n"
                 "}"
                 : $outputs
                 : $inputs, "l"(b)
                 : "memory");
    for (int i = 0; i < $d_count; ++i)
        if (d_row(thread, i) == at_i && d_col(thread & 31, i) == at_j) row.d = $store_d;
    *ran = 1;
#endif
}
""")
