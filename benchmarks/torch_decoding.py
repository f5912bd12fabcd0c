"""A model that generates text on an instruction, with and without kept operands, in one process.

    python benchmarks/torch_decoding.py

The model is DEPTH blocks of attention and a feed-forward layer of WIDTH features, without embeddings, its weights in
bf16.  Each step takes one row and keeps keys and values of all rows before.  Turns with kept operands
(`mmaformal.torch.kept`) and without (its limit 0) alternate; the least processor time of each counts.  All outputs
are compared, bit for bit.
"""

from __future__ import annotations

import argparse
import sys
import time

sys.path.append(sys.path.pop(0))  # where `profile` is not the standard library's, which torch imports

import torch
from torch import nn
from torch.nn import functional

from mmaformal import Instruction, hopper
from mmaformal.torch import arithmetic, kept

WIDTH, DEPTH, HEADS, STEPS = 1024, 2, 8, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2))

    def forward(self, x: torch.Tensor, past: list[torch.Tensor]) -> torch.Tensor:
        q, k, v = (t.view(1, HEADS, 1, -1) for t in self.into(self.norms[0](x)).chunk(3, -1))
        past[:] = (
            [torch.cat([old, new], 2) for old, new in zip(past, (k, v), strict=True)] if past else [k, v]
        )
        x = x + self.out(functional.scaled_dot_product_attention(q, *past).reshape(1, WIDTH))
        return x + self.down(functional.silu(self.up(self.norms[1](x))))


def decoded(blocks: nn.ModuleList, i: Instruction) -> tuple[float, torch.Tensor]:
    """Processor time of the steps after the first two, which the cache needs to know the weights; and the rows."""
    x, past = torch.ones(1, WIDTH, dtype=torch.bfloat16), [[] for _ in blocks]
    rows, start = [], 0.0
    with torch.no_grad(), arithmetic(i):
        for step in range(STEPS + 2):
            if step == 2:
                start = time.process_time()
            for block, own in zip(blocks, past, strict=True):
                x = block(x, own)
            rows.append(x)
    return time.process_time() - start, torch.cat(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    blocks = nn.ModuleList(Block() for _ in range(DEPTH)).to(torch.bfloat16)
    limit = kept.limit
    print("| instruction | CPU time, kept over not | speed-up | kept, MB | same bits |")
    print("|---|---|---|---|---|")
    for i in (hopper["HMMA.16816.F32.BF16"], hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]):
        best, outputs, held = {0: float("inf"), limit: float("inf")}, [], 0
        for _ in range(args.repeats):
            for kept.limit in best:
                kept.clear()
                spent, rows = decoded(blocks, i)
                best[kept.limit] = min(best[kept.limit], spent)
                outputs.append(rows)
                held = max(held, kept.nbytes)
        ratio = best[limit] / best[0]
        same = all(torch.equal(outputs[0], each) for each in outputs)
        print(
            f"| {i.label} | {ratio:.2f} | {1 / ratio:.2f} | {held / 1e6:.1f} | {'yes' if same else 'no'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
