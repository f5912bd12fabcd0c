"""PTX instruction names: from an opcode with its qualifiers to the short spelling of the tables.

Sources: PTX ISA 9.0, sections "Multiply-and-Accumulate Instruction: mma", "Block Scaling for mma.sync",
"Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async", "Tensorcore 5th Generation Instructions:
tcgen05.mma" and, for the sizes of the latter, the table "Various combinations of .kind and shapes".  The
synopses give the qualifiers in one order; ptxas (of CUDA 13.5, asked about each spelling that tests/package/test_ptx.py
lists) takes them in any, and headers in the wild write `.kind` before the shape.  So any order is read here,
but for the types, which are distinguished by their order alone: D, A, B, C, scales.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SHAPE = re.compile(r"m([1-9]\d*)n([1-9]\d*)k([1-9]\d*)")
_TYPE = re.compile(r"f16|bf16|tf32|f32|f64|e[2-5]m[1-3]|ue8m0|ue4m3")

#: The forms of each opcode: what may stand beside shape, types and scaling, all of a group or none of it.
_GROUPS: Mapping[str, tuple[frozenset[str], ...]] = {
    "mma": (frozenset({"sync", "aligned"}),),
    "wgmma": (frozenset({"mma_async", "sync", "aligned"}),),
    "tcgen05": (frozenset({"mma"}),),
}

#: `.scale_vec::nX` of each `.kind` with block scales, and the products that share a scale.
#: "Block Scaling for mma.sync": n scales for each row of A; tcgen05 calls the same `.blockS`.
_SCALE_VECTORS = {"mxf8f6f4": {1: 32}, "mxf4": {2: 32}, "mxf4nvf4": {2: 32, 4: 16}}

#: ".scale_vec_size … defaults to": of mxf4nvf4 "it is mandatory".
_DEFAULT_VECTOR = {"mxf8f6f4": 1, "mxf4": 2}

#: m and step of n of tcgen05.mma, by `.cta_group`; with block scales, m64 is not among them.
_TCGEN05_SIZES = {1: {64: 8, 128: 8}, 2: {128: 16, 256: 16}}


def short_name(name: str) -> str | None:
    """The spelling of docs/semantics.md §6: without the qualifiers that do not touch the arithmetic.

    `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` is `mma.m16n8k16.f32.f16.f16.f32`, `.scale_vec::2X` with
    K = 64 is `.block32`, `.cta_group` is left out.  What is abbreviated already is taken too.

    None if PTX has no such form: qualifiers that are unknown, come twice or are one half of a pair, a layout or
    a scale vector size that the instruction does not have, or a size that its `.cta_group` does not have.
    Whether any GPU has the types is for the tables to say.
    """
    opcode, *qualifiers = name.strip().lower().split(".")
    if opcode not in _GROUPS:
        return None
    words: set[str] = set()
    fields: dict[str, str] = {}
    layouts: list[str] = []
    types: list[str] = []
    for qualifier in qualifiers:
        if qualifier in ("row", "col"):
            layouts.append(qualifier)
        elif _TYPE.fullmatch(qualifier):
            types.append(qualifier)
        elif qualifier in ("sync", "aligned", "mma_async", "mma", "block_scale"):
            if qualifier in words:
                return None
            words.add(qualifier)
        else:
            key = "shape" if _SHAPE.fullmatch(qualifier) else _field(qualifier)
            if key is None or key in fields:
                return None
            fields[key] = qualifier.partition("::")[2] or qualifier
    if "shape" not in fields or not _groups_are_whole(opcode, words - {"block_scale"}):
        return None
    if not _layouts_exist(opcode, fields["shape"], types, layouts):
        return None
    if not _size_exists(opcode, fields):
        return None
    scaling = _scaling(opcode, fields, "block_scale" in words)
    if scaling is None:
        return None
    kind = [f"kind::{fields['kind']}"] if "kind" in fields else []
    head = "tcgen05.mma" if opcode == "tcgen05" else opcode
    return ".".join([head, fields["shape"], *kind, *scaling, *types])


def _field(qualifier: str) -> str | None:
    """Which of the qualifiers with a value this is."""
    if re.fullmatch(r"block(16|32)", qualifier):
        return "block"
    key, separator, value = qualifier.partition("::")
    return key if separator and value and key in ("kind", "scale_vec", "cta_group") else None


def _groups_are_whole(opcode: str, words: set[str]) -> bool:
    """tcgen05 alone is no instruction; of the others `.sync.aligned` may be left out, but not half of it."""
    (group,) = _GROUPS[opcode]
    return words == group or (not words and opcode != "tcgen05")


def _layouts_exist(opcode: str, shape: str, types: list[str], layouts: list[str]) -> bool:
    """Every mma is `.row.col`, but for m8n8k4 on fp16, which has all four."""
    if not layouts:
        return True
    if opcode != "mma" or len(layouts) != 2:
        return False
    return layouts == ["row", "col"] or (shape == "m8n8k4" and types[1:3] == ["f16", "f16"])


def _size_exists(opcode: str, fields: Mapping[str, str]) -> bool:
    m, n, _ = map(int, _SHAPE.fullmatch(fields["shape"]).groups())  # type: ignore[union-attr]
    if opcode != "tcgen05":
        return "cta_group" not in fields and (opcode == "mma" or (m == 64 and n % 8 == 0 and n <= 256))
    groups = [fields["cta_group"]] if "cta_group" in fields else ["1", "2"]
    scaled = fields.get("kind") in _SCALE_VECTORS
    for group in groups:
        step = _TCGEN05_SIZES.get(int(group) if group in ("1", "2") else 0, {}).get(m)
        if step is not None and n % step == 0 and n <= 256 and not (scaled and m == 64):
            return True
    return False


def _scaling(opcode: str, fields: Mapping[str, str], block_scale: bool) -> list[str] | None:
    """`.blockS` where there are block scales, nothing where there are none, None if there is no such form."""
    vectors = _SCALE_VECTORS.get(fields.get("kind", ""))
    if vectors is None:
        return None if block_scale or {"scale_vec", "block"} & fields.keys() else []
    if "scale_vec" in fields:
        n = re.fullmatch(r"([124])x", fields["scale_vec"])
        if n is None or not block_scale or "block" in fields or int(n[1]) not in vectors:
            return None
        return [f"block{vectors[int(n[1])]}"]
    if "block" in fields:
        # of mma, `.blockS` is the short spelling's; of tcgen05, PTX's own
        exists = fields["block"] in {f"block{block}" for block in vectors.values()}
        return [fields["block"]] if exists and not (block_scale and opcode == "mma") else None
    default = _DEFAULT_VECTOR.get(fields["kind"])
    return [f"block{vectors[default]}"] if block_scale and default is not None else None
