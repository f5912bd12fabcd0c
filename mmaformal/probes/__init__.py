"""Readings of a unit from its answers to chosen inputs: the classical probes (MMA-Sim §III; FPRev)."""

from mmaformal.probes.report import Probed, probe
from mmaformal.probes.tree import Tree

__all__ = ["Probed", "Tree", "probe"]
