"""Rows of gfdrda: `fdrda` with two groups."""

from __future__ import annotations

from mmaformal.kernels.rows.fdrda import run

__all__ = ["run"]
