"""Quantised operands that are kept: never those of other contents, within a limit, and no longer than the tensors."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from mmaformal import hopper, matmul
from mmaformal.torch import arithmetic, kept
from mmaformal.torch.cache import _digest

H = hopper["HMMA.16816.F32"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    kept.clear()
    limit, kept.hits, kept.misses = kept.limit, 0, 0
    yield
    kept.limit = limit
    kept.clear()


def normal(*shape: int, seed: int = 0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, W = normal(1, 96), normal(64, 96, seed=1)


def product(w, i=H):
    with arithmetic(i):
        return torch.nn.functional.linear(X, w)


def wanted(w):
    return matmul(X.half(), w.T.contiguous().half(), instruction=H)


def test_a_weight_is_quantised_twice_and_then_no_more() -> None:
    w = W.clone()
    for uses in range(1, 6):
        assert torch.equal(product(w), wanted(w))
        assert kept.hits == max(uses - 2, 0)
    assert kept.nbytes == 2 * w.numel()
    product(w, FP8)
    product(w, FP8)
    both = kept.nbytes
    assert both == 3 * w.numel() + 8  # of each format its own; fp8 has a factor
    product(w.T.contiguous().T)
    assert kept.nbytes == both  # another tensor of the same numbers


CHANGES = {
    "in place": lambda w: w.mul_(2),
    "of a part": lambda w: w[3].zero_(),
    ".data": lambda w: w.data.mul_(2),
    "an element of .data": lambda w: w.data.__setitem__((5, 7), 9.0),
    "two rows of .data": lambda w: w.data.__setitem__([0, 1], w.data[[1, 0]]),
    "NumPy": lambda w: np.copyto(w.detach().numpy(), 3.0),
    "detached": lambda w: w.detach().add_(1),
    ".data set": lambda w: setattr(w, "data", W * 3),
    "a parameter's step": lambda w: (
        torch.optim.SGD([w], 0.1).step() if w.grad is not None else w.data.add_(1)
    ),
    "another thread": lambda w: run(lambda: w.data.mul_(3)),
}


def run(call) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str) -> None:
    w = W.clone()
    for _ in range(3):
        product(w)
    assert kept.hits == 1
    before = wanted(w)
    CHANGES[name](w)
    assert not torch.equal(wanted(w), before)
    for _ in range(3):
        assert torch.equal(product(w), wanted(w))


def test_tensors_of_inference_mode() -> None:
    with torch.inference_mode():
        w = W.clone()
        for _ in range(3):
            assert torch.equal(product(w), wanted(w))
        w.mul_(2)
        assert torch.equal(product(w), wanted(w))
    assert kept.hits == 1


def test_memory_goes_with_the_tensor() -> None:
    w = W.clone()
    product(w), product(w)
    assert kept.nbytes > 0
    del w
    gc.collect()
    kept._sweep()
    assert kept.nbytes == 0


def test_memory_stays_within_the_limit() -> None:
    """A model of more weights than fit keeps those that do, instead of losing each before its next use."""
    weights = [W.clone() + i for i in range(5)]
    size = 2 * W.numel()
    kept.limit = 3 * size
    for _ in range(6):
        for w in weights:
            assert torch.equal(product(w), wanted(w))
            assert kept.nbytes <= kept.limit
    assert kept.nbytes == 3 * size
    assert kept.hits == 3 * 4
    other = W.clone() - 9  # the first ones are used no more, and make room
    for _ in range(4):
        for w in (other, weights[4]):
            product(w)
    assert kept.hits >= 3 * 4 + 4
    kept.limit = 0
    assert torch.equal(product(weights[0]), wanted(weights[0]))


def test_training_keeps_nothing_of_weights_that_change() -> None:
    w = torch.nn.Parameter(W.clone())
    optimizer = torch.optim.SGD([w], 0.1)
    for _ in range(4):
        product(w).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert kept.nbytes == 0
    assert kept.hits == 0


def test_parts_of_memory_and_other_orders() -> None:
    whole = normal(80, 200, seed=3)
    for w in (whole[:64, :96], whole[:64].T[:96].T, whole.view(-1)[: 64 * 96].view(64, 96), normal(96, 64).T):
        for _ in range(4):
            assert torch.equal(product(w), wanted(w))
        with torch.no_grad():
            w[0, 0] += 1
        assert torch.equal(product(w), wanted(w))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.data())
def test_the_digest_of_a_change(words: list[int], data: st.DataObject) -> None:
    """One word more or less of a bit is another digest, and so are two words that change places."""
    array = np.array(words, np.uint64)
    place, bit = data.draw(st.integers(0, len(words) - 1)), data.draw(st.integers(0, 63))
    other = array.copy()
    other[place] ^= np.uint64(1 << bit)
    assert _digest(array) != _digest(other)
    turned = array[::-1].copy()
    assert (turned == array).all() or _digest(array) != _digest(turned)
