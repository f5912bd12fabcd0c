"""Small networks trained on a chosen arithmetic: what an accumulator's bits cost in accuracy (TensorGauge, §VI-B)."""
