"""Calls of PyTorch's operators made again, sum by sum, in the order in which its kernels for AVX2 and AVX-512 add.

`rules` has the table of operators; `lanes`, `reductions`, `attention` and `products` the orders; `recorder` writes down
what a model calls, and `again` makes it once more.  The orders are facts read from PyTorch's published source and
checked bit for bit against it (tests/pytorch/test_replayed_sums.py).
"""
