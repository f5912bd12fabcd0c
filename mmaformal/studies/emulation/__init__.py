"""Emulations of wider formats by programs over instructions: their bounds, and which is less accurate."""
