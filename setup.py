"""The packages: those below mmaformal/ are found, those that stand beside it are named (pyproject.toml)."""

from setuptools import find_packages, setup

PLACED = ["mmaformal.encodings.executable", "mmaformal.encodings.smt", "mmaformal.queries"]

setup(packages=[*find_packages(include=["mmaformal", "mmaformal.*"]), *PLACED])
