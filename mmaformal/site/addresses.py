"""Addresses of pages, from the folder of another one."""

from __future__ import annotations

from mmaformal.instruction import Instruction


def page_address(i: Instruction, root: str = "") -> str:
    """The page of an instruction, chained or not."""
    return f"{root}instruction/{i.architecture}/{i.name.partition('[')[0]}.html"


def proof_address(label: str, name: str, root: str = "") -> str:
    """The page of the proof that the instruction of a label has a property."""
    return f"{root}proof/{label.replace(' ', '/')}/{name}.html"


def script_address(digest: str, root: str = "") -> str:
    """The file of an obligation's script, packed."""
    return f"{root}smt2/{digest}.smt2.gz"
