"""`python -m mmaformal` is `mmaformal`."""

from mmaformal.cli import script

script()
