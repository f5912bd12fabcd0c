"""Each order of additions gives what PyTorch's kernel gives, bit for bit, where the processor has AVX2 or AVX-512."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
    pytest.skip(
        "the kernels for AVX2 and AVX-512 are known; torch takes others here", allow_module_level=True
    )

from mmaformal import Structure
from mmaformal.queries.replay_model import _search
from mmaformal.torch.replayed.lanes import fma_unit
from mmaformal.torch.replayed.products import NoRuleError, Products
from mmaformal.torch.replayed.recorder import different
from mmaformal.torch.replayed.rules import SUMS, ReplayState

ATEN = torch.ops.aten
TYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(autouse=True)
def drawn() -> None:
    torch.manual_seed(0)


def wrong(name: str, *args: object, **kwargs: object) -> list[int]:
    """How many elements of each result differ."""
    state = ReplayState(Products(_search))
    ours, theirs = SUMS[name](state, *args, **kwargs), getattr(ATEN, name)(*args, **kwargs)
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return [int(different(x.contiguous(), y).sum()) for x, y in pairs]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("n", [5, 9, 31, 512, 1376, 40_003])
def test_sums_and_means_of_rows(n: int, dtype: torch.dtype) -> None:
    x = torch.randn(2, 20, n).to(dtype)
    assert wrong("sum", x, [-1]) == [0]
    assert wrong("mean", x, [2], True) == [0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 13, 128, 517])
def test_softmax(n: int, dtype: torch.dtype) -> None:
    assert wrong("_softmax", (3 * torch.randn(4, 300, n)).to(dtype), -1, False) == [0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("n", [7, 44, 512, 1376, 4099])
def test_layer_norm(n: int, dtype: torch.dtype) -> None:
    x, weight, bias = torch.randn(64, n).to(dtype), torch.randn(n).to(dtype), torch.randn(n).to(dtype)
    for factors in ((weight, bias), (weight, None), (None, bias), (None, None)):
        assert wrong("native_layer_norm", x, [n], *factors, 1e-5) == [0, 0, 0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("queries", "keys"), [(64, 64), (72, 72), (200, 200), (64, 24), (32, 700)])
def test_attention(queries: int, keys: int, dtype: torch.dtype) -> None:
    q, k, v = (
        (2 * torch.randn(1, n, size, 32)).to(dtype) for n, size in ((4, queries), (2, keys), (2, keys))
    )
    mask = torch.randn(1, 1, queries, keys).to(dtype)
    for how in ({}, {"attn_mask": mask}, {"scale": 0.2}):
        assert wrong("_scaled_dot_product_flash_attention_for_cpu", q, k, v, **how) == [0, 0]
    if queries == keys:
        assert wrong("_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, True) == [0, 0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("queries", "keys"), [(1, 64), (64, 1), (33, 33)])
def test_attention_of_vectors_is_refused(queries: int, keys: int, dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(1, 2, size, 64).to(dtype) for size in (queries, keys, keys))
    with pytest.raises(NoRuleError, match="one query"):
        wrong("_scaled_dot_product_flash_attention_for_cpu", q, k, v)


def test_attention_of_rows_that_see_nothing() -> None:
    q, k, v = (torch.randn(1, 1, 40, 32) for _ in range(3))
    mask = torch.zeros(1, 1, 40, 40)
    mask[..., 3, :] = -torch.inf
    assert wrong("_scaled_dot_product_flash_attention_for_cpu", q, k, v, attn_mask=mask) == [0, 0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(40, 64, 96), (33, 205, 64), (64, 509, 32)], ids=str)
def test_products(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, k, n = shape
    a, b, turned, c = (torch.randn(size).to(dtype) for size in ((m, k), (k, n), (n, k), (n,)))
    for factor in (b, turned.T):
        assert wrong("mm", a, factor) == [0]
        assert wrong("addmm", c, a, factor) == [0]
    assert wrong("bmm", a.expand(3, m, k), torch.stack([b, b, -b])) == [0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_row_times_a_matrix_as_layers_have_it(dtype: torch.dtype) -> None:
    """One token of a model: MKL takes vectors of fp32 that multiply and add."""
    a, turned = torch.randn(1, 64).to(dtype), torch.randn(96, 64).to(dtype)
    assert wrong("mm", a, turned.T) == [0]


def test_few_elements_tell_no_structure_by_one_product() -> None:
    """A structure that fits one element by chance is refused by the other products of its shape."""
    chance = Structure(fma_unit(), lanes=4)
    products = Products(lambda D, *_: chance)  # found, whatever D is
    a, b = torch.randn(1, 400), torch.randn(400, 1)
    with pytest.raises(NoRuleError, match="no structure"):
        products.run(ATEN.mm.default, a, b)


def test_what_a_rule_does_not_reach_is_refused() -> None:
    state, x = ReplayState(Products(_search)), torch.randn(8, 64)
    for name, args in {
        "sum": (x, [0]),
        "mean": (x.double(), [-1]),
        "_softmax": (x, 0, False),
        "addmm": (x, x, torch.randn(64, 64)),
    }.items():
        with pytest.raises(NoRuleError):
            SUMS[name](state, *args, **({"alpha": 2} if name == "addmm" else {}))
