"""The unit study: how far datapaths are from the exact sum, over fractional bits and K (docs/unit-study.md)."""
