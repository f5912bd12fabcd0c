"""`python -m mmaformal.cli` is `mmaformal`."""

from mmaformal.cli import script

script()
