"""Steps of gfdrda, shown as those of fdrda."""

from __future__ import annotations

from mmaformal.encodings.fdrda.renderer import steps

__all__ = ["steps"]
