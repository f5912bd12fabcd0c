"""Programs as designs: an emulator in Python, NumPy or torch operations, run on symbolic values, is a `Module`."""
