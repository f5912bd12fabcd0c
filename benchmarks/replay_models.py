"""Transformers of `transformers`, random weights, run by PyTorch and replayed: docs/replay-model.md.

    python benchmarks/replay_models.py --json benchmarks/replay-models.json

Each model has 4 layers, 512 features, 8 heads, and 128 tokens or one.  Times are the processor's; the replay's includes
learning the structures of products and compiling kernels that are not kept from before.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.append(sys.path.pop(0))  # where `profile` is not the standard library's, which torch imports

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from mmaformal import replay_model

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 4, 512, 8, 128, 1000


def model(name: str, attention: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if name == "Llama":
        llama = LlamaConfig(
            hidden_size=WIDTH, intermediate_size=1376, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            num_key_value_heads=HEADS // 2, vocab_size=WORDS, attn_implementation=attention,
        )  # fmt: skip
        return LlamaForCausalLM(llama)
    gpt2 = GPT2Config(
        n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=WORDS, n_positions=2 * TOKENS,
        bos_token_id=0, eos_token_id=0, attn_implementation=attention,
    )  # fmt: skip
    return GPT2LMHeadModel(gpt2)


def measured(name: str, dtype: torch.dtype, attention: str, count: int) -> dict[str, object]:
    tokens = torch.randint(WORDS, (1, count), generator=torch.Generator().manual_seed(1))
    found = replay_model(
        model(name, attention).to(dtype).eval(), named={"input_ids": tokens, "use_cache": False}
    )
    return {
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "model": name if count == TOKENS else f"{name}, one token",
        "type": str(dtype).removeprefix("torch."),
        "attention": attention,
        "verdict": found.verdict,
        "tensors": sum(found.tensors.values()),
        "equal": sum(found.equal.values()),
        "sums": found.tensors["sum"],
        "not_replayed": sum(found.left.values()),
        "cpu_seconds": round(found.cpu_seconds, 1),
        "model_cpu_seconds": round(found.model_cpu_seconds, 2),
        "times": round(found.times, 1),
        "threads": found.threads,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    parser.add_argument("--threads", type=int, default=1, help="of torch's")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = [
        measured(name, dtype, attention, tokens)
        for tokens in (TOKENS, 1)
        for name in ("Llama", "GPT-2")
        for dtype in (torch.float32, torch.bfloat16)
        for attention in ("eager", "sdpa")
    ]
    head = "kernels", "model", "type", "attention", "equal / all", "of these by sums", "not replayed"
    print("|", " | ".join((*head, "CPU, s", "model's own", "ratio")), "|")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        equal = f"{row['equal']} / {row['tensors']}"
        of = (row["kernels"], row["model"], row["type"], row["attention"])
        cells = (*of, equal, row["sums"], row["not_replayed"])
        print(
            "|",
            " | ".join(map(str, (*cells, row["cpu_seconds"], row["model_cpu_seconds"], row["times"]))),
            "|",
        )
    if given.json:
        kept = json.loads(given.json.read_text()) if given.json.exists() else []
        kept = [x for x in kept if x["kernels"] != rows[0]["kernels"]] + rows
        given.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
