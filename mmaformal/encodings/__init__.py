"""Every algorithm, twice: `smt` as bit-vector constraints, `executable` as integer Python.  They share no code."""
