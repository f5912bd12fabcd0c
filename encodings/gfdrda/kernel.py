"""The kernel of gfdrda: fdrda's, which knows of groups."""

from __future__ import annotations

from mmaformal.encodings.fdrda.kernel import FdrdaKernel

KERNEL = FdrdaKernel
