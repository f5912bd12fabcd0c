"""Studies: what is claimed of particular designs, programs and formats, asked of the models and their proofs.

A study uses the house; nothing of the house imports a study (a contract in pyproject.toml).  Only the command line and
the lazy names of `mmaformal` itself lead here.
"""
