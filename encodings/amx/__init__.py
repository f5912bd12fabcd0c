"""Apple AMX's matrix coprocessor: what its instructions do to registers, in both encodings."""
