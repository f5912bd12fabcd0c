"""A recording's meta: the instruction that it names, and the formats of the arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.recordings.archive import META_FIELDS, RecordingError, short
from mmaformal.recordings.names import look_up


def meta_of_unit(instruction: Instruction) -> dict[str, object]:
    """Return the meta of a recording of whole rows of an instruction."""
    i = instruction
    meta: dict[str, object] = {
        "architecture": i.architecture,
        "instruction": i.name,
        "ptx": next((name for name in i.aliases if name.startswith(("mma.", "wgmma.", "tcgen05."))), None),
        **{f"{x}_format": str(i.format_of(x)) for x in "abcd"},
        "output_format": str(i.d_format),
        "terms": i.k,
    }
    if i.a_format is i.b_format:
        meta["input_format"] = str(i.a_format)
    if i.spec.scale_format is not None:
        meta |= {"scale_format": str(i.spec.scale_format), "scale_block": i.spec.scale_block}
    return meta


def text_of(meta: Mapping[str, object], name: str, path: Path) -> str | None:
    value = meta.get(name)
    if value is not None and not isinstance(value, str):
        raise RecordingError(path, f"meta has {name!r}: {short(value)}, which is not a string")
    return value


def recorded_unit(
    meta: Mapping[str, object], path: Path, *, overridden: bool, modelled: bool = True
) -> Instruction | None:
    """The model of the instruction that meta names; None where there is none yet.

    modelled: False where none is needed: then names that no table has are no error.
    """
    if modelled:
        return _instruction_of(meta, path, overridden)
    try:
        return _instruction_of(meta, path, overridden)
    except RecordingError:
        return None


def _instruction_of(meta: Mapping[str, object], path: Path, overridden: bool) -> Instruction | None:
    architecture_name = text_of(meta, "architecture", path)
    if architecture_name is None:
        raise RecordingError(path, f"no architecture None; there are {', '.join(ARCHITECTURES)}")
    if architecture_name not in ARCHITECTURES:
        raise RecordingError(path, ARCHITECTURES.not_found(architecture_name[:40]))
    architecture = ARCHITECTURES[architecture_name]
    sass, ptx = text_of(meta, "instruction", path), text_of(meta, "ptx", path)
    name = ptx if sass is None else sass
    if name is None:
        raise RecordingError(path, "meta has a null instruction and no 'ptx' to go by: give one of them")
    if candidates := architecture.of_opcode(name):
        name = _with_types(name, candidates, meta, path)
    try:
        instruction = look_up(architecture, name)
    except UnknownInstructionError as error:
        raise RecordingError(path, str(error)) from None
    if instruction is None or overridden or ptx is None or ptx not in architecture:
        return instruction
    if architecture[ptx] != instruction:
        raise RecordingError(
            path,
            f"meta contradicts itself: instruction is {instruction.name}, but ptx is that of "
            f"{architecture[ptx].name}; correct one of them",
        )
    return instruction


def _with_types(
    opcode: str, candidates: tuple[Instruction, ...], meta: Mapping[str, object], path: Path
) -> str:
    """The name of the one instruction of this opcode that has the formats of meta, and scales if it has them."""
    named = {name: meta.get(f"{name}_format", meta.get("input_format")) for name in "ab"}
    fits = [
        each.name
        for each in candidates
        if getattr(each.spec.scale_format, "name", None) == meta.get("scale_format")
        and named == {"a": each.a_format.name, "b": each.b_format.name}
        and each.d_format.name == meta.get("d_format", meta.get("output_format"))
        and (each.name.startswith("UTC") or meta.get("terms", each.k) == each.k)
    ]
    if len(fits) != 1:
        shown = ", ".join(each.name for each in candidates[:4])
        raise RecordingError(
            path,
            f"{opcode} is said without its types, and meta's formats do not say which it is: name it with its types, "
            f"as in {shown}",
        )
    return fits[0]


class ArrayFormats(NamedTuple):
    """The formats of a recording's arrays."""

    a: Format
    b: Format
    c: Format
    d: Format
    scale: Format | None  #: of block scales
    scale_block: int  #: products per pair of scales; 0 where there are none


#: meta may have these in place of input_format and output_format
_SINGLE = ("a_format", "b_format", "c_format", "d_format")


def lacking(meta: Mapping[str, object], vouched: Collection[str]) -> list[str]:
    """Return the fields that meta has to say and does not; `vouched` is what need not be said."""
    found = [name for name in META_FIELDS if name not in meta and name not in vouched]
    instead = {"input_format": ("a_format", "b_format"), "output_format": ("d_format",)}
    return [name for name in found if not all(each in meta for each in instead.get(name, (name,)))]


def formats_of(meta: Mapping[str, object], instruction: Instruction | None, path: Path) -> ArrayFormats:
    """The formats of the arrays.  c is of d's type, unless meta or the instruction says otherwise."""
    named = {
        name: _format(meta, name, path)
        for name in ("input_format", "output_format", *_SINGLE)
        if name in meta
    }
    given, result = named.get("input_format"), named.get("output_format")
    a, b, d = named.get("a_format", given), named.get("b_format", given), named.get("d_format", result)
    c = named.get("c_format")
    scale = _format(meta, "scale_format", path) if meta.get("scale_format") is not None else None
    block = meta.get("scale_block", 0)
    if not isinstance(block, int) or isinstance(block, bool) or block < 0:
        raise RecordingError(
            path, f"meta has 'scale_block': {short(block)}; it is how many products share scales"
        )
    if instruction is None:
        if a is None or b is None or d is None:
            raise RecordingError(
                path,
                "meta lacks its formats, and no table has the instruction: add input_format and output_format",
            )
        return ArrayFormats(a, b, c or d, d, scale, block)
    spec = instruction.spec
    own_c = spec.c_format if d is None or d is spec.d_format else d
    return ArrayFormats(
        a or spec.a_format,
        b or spec.b_format,
        c or own_c,
        d or spec.d_format,
        scale or spec.scale_format,
        block or spec.scale_block,
    )


def _format(meta: Mapping[str, object], name: str, path: Path) -> Format:
    text = meta[name]
    if not isinstance(text, str) or text not in FORMATS:
        raise RecordingError(path, f"meta has {name!r}: {short(text)}; formats are {', '.join(FORMATS)}")
    return FORMATS[text]
