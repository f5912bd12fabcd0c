"""A whole model is replayed bit for bit; the first tensor that is not equal is told, and what has no rule is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
    pytest.skip(
        "the kernels for AVX2 and AVX-512 are known; torch takes others here", allow_module_level=True
    )
from torch.nn import functional

from mmaformal import cli, replay_model
from mmaformal.queries.replay_model import _search
from mmaformal.torch.replayed import reductions
from mmaformal.torch.replayed.again import Replay
from mmaformal.torch.replayed.recorder import record_products

WIDE, HEADS, TOKENS = 64, 4, 48


class Block(torch.nn.Module):
    """Attention and a feed-forward layer, each behind a norm."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.norm, self.scale = torch.nn.LayerNorm(WIDE), torch.nn.RMSNorm(WIDE)
        self.mix, self.out = torch.nn.Linear(WIDE, 3 * WIDE), torch.nn.Linear(WIDE, WIDE, bias=False)
        self.up, self.down = torch.nn.Linear(WIDE, 152), torch.nn.Linear(152, WIDE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.mix(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (each.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for each in parts)
        if self.fused:
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / 4
            mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
            seen = scores.masked_fill(mask, -torch.inf).softmax(-1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.scale(x))))


def network(dtype: torch.dtype, fused: bool = True) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(50, WIDE), Block(fused), Block(fused)).to(dtype).eval()


def tokens() -> torch.Tensor:
    return torch.arange(TOKENS)[None] % 50


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_tensor_is_equal(dtype: torch.dtype, fused: bool) -> None:
    found = replay_model(network(dtype, fused), tokens())
    assert found.verdict == "equal", str(found)
    assert not found.left
    assert found.repeats
    assert found.sums["addmm"] == 6
    assert found.called["gelu"] == 2
    assert json.loads(found.json())["tensors"]["sum"] == found.equal["sum"]


@pytest.mark.parametrize("name", ["1.up.weight", "2.norm.weight"])
def test_a_weight_that_was_changed_by_an_ulp_is_told(name: str) -> None:
    model = network(torch.float32)
    recording = record_products(model, (tokens(),), {})
    weight = dict(model.named_parameters())[name].data.view(-1)
    weight[5:6].view(torch.int32).add_(1)
    first = Replay(recording, _search, lambda _: None).run().wrong[0]
    assert name in first.reads
    assert first.module == name.rpartition(".")[0]
    assert first.elements >= 1
    if "up" in name:  # a view of it is the first tensor
        assert (first.operator, first.elements, first.ulps) == ("t", 1, 1)


def test_another_order_of_a_sum_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., object] = reductions.in_registers
    monkeypatch.setattr(reductions, "in_registers", lambda x, *lanes: right(x[..., ::-1].copy(), *lanes))
    found = replay_model(network(torch.float32, fused=False), tokens())
    assert found.verdict == "differs"
    assert (found.wrong[0].operator, found.wrong[0].module) == ("_softmax", "1")
    assert "the first that is not: tensor" in str(found)


def test_an_operator_without_a_rule_is_named_and_the_replay_goes_on() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = torch.cumsum(x, -1)
        y.index_put_((torch.tensor([0, 0]),), torch.ones(2, 30), accumulate=True)
        return functional.conv1d(y[None], torch.ones(1, 8, 3)).sin() + x.half().sum(-1)[0] + x.mean()

    found = replay_model(run, torch.randn(8, 30))
    assert found.verdict == "part"
    assert {name for name, _ in found.left} == {"cumsum", "index_put_", "convolution", "sum", "mean"}
    assert found.equal == found.tensors
    assert "not replayed: cumsum, 1 call: in no table" in str(found)


def test_what_is_written_in_place_is_replayed() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:3] = x[:2] @ torch.ones(32, 32)
        y.mul_(2).add_(x)
        return y.softmax(-1).masked_fill_(y > 0, 0)

    given = torch.randn(64, 32)
    before = given.clone()
    found = replay_model(run, given)
    assert found.verdict in ("equal", "part"), str(found)
    assert not found.wrong
    assert torch.equal(given, before)


FILE = """
import torch
torch.manual_seed(0)
def net():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)), torch.randn(32, 64)
def left():
    return (lambda x: x.cumsum(0)), torch.randn(32, 64)
number = 3
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text(FILE)
    assert cli.main(["replay-model", f"{path}:net"]) == 0
    assert capsys.readouterr().out.startswith("equal: 5 of 5 tensors equal")
    assert cli.main(["replay-model", f"{path}:left"]) == 3
    assert cli.main(["replay-model", f"{path}:number"]) == 2
    assert "has no function number" in capsys.readouterr().err


def test_a_program_that_was_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.randn(32, 64)
    torch.export.save(torch.export.export(torch.nn.Linear(64, 48), (x,)), tmp_path / "net.pt2")
    torch.save((x,), tmp_path / "x.pt")
    assert cli.main(["replay-model", str(tmp_path / "net.pt2"), str(tmp_path / "x.pt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "equal"
    assert cli.main(["replay-model", str(tmp_path / "net.pt2")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_transformer(dtype: torch.dtype) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, vocab_size=1000,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).to(dtype).eval()
    found = replay_model(model, named={"input_ids": torch.randint(1000, (1, 128)), "use_cache": False})
    assert found.verdict == "equal", str(found)
    assert sum(found.tensors.values()) > 300
