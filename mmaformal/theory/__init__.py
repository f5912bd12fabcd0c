"""Theorems about numbers, sums and their rounding, of no algorithm in particular."""
