"""An architecture: a named table of instructions, with look-up that helps when a name is wrong."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mmaformal.architectures import products, ptx
from mmaformal.display import ShortRepr, Tabular, counted, html_folded, html_table, html_title
from mmaformal.formats import FORMATS
from mmaformal.instruction import SHAPE, Instruction, respell


class UnknownInstructionError(KeyError):
    """An architecture has no instruction of that name; the message lists the nearest ones and who has it."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownArchitectureError(KeyError):
    """There is no architecture of that name; the message lists those there are."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownRevisionError(KeyError):
    """An architecture has no revision of that name; the message lists those it has."""

    def __str__(self) -> str:
        return str(self.args[0])


def canonical_name(name: str) -> str:
    """Names compare without case, MFMA without the prefix, PTX by its short spelling (`ptx.short_name`).

    A spelling that PTX does not have stays as it is, and is in no table.
    """
    name = name.strip().lower().removeprefix("v_mfma_")
    if name.startswith("wmma."):
        return re.sub(r"\.(sync|aligned|row|col)\b", "", name)
    return ptx.short_name(name) or name


#: Sets of types as names of instructions write them for short: `QGMMA.64x8x32.F32.f8type.f8type`.
TYPE_SETS = {
    "f8type": frozenset({"e4m3", "e5m2"}),
    "f8f6f4type": frozenset({"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}),
}


#: People's words for sets of types of a and b, beside the formats by their own names.
TYPE_WORDS = {
    "fp8": frozenset({"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"}),
    "fp6": frozenset({"e2m3", "e3m2"}),
    "fp4": frozenset({"e2m1"}),
}

#: Words for types with block scales: the types of a and b, that of the scales, and the products that share one.
SCALED_WORDS = {
    "mxfp8": (TYPE_WORDS["fp8"], "ue8m0", 32),
    "mxfp6": (TYPE_WORDS["fp6"], "ue8m0", 32),
    "mxfp4": (TYPE_WORDS["fp4"], "ue8m0", 32),
    "nvfp4": (TYPE_WORDS["fp4"], "ue4m3", 16),
}


def takes(instruction: Instruction, word: str) -> bool:
    """Whether a and b of an instruction are of the types that a word means: `fp8`, `e4m3`, `mxfp8`, `fp16+fp32`.

    What follows a plus is the type of d.  Words without `mx` or `nv` mean no block scales.
    """
    factors, _, result = word.strip().lower().partition("+")
    spec = instruction.spec
    types, scale, block = SCALED_WORDS.get(factors, (TYPE_WORDS.get(factors, frozenset({factors})), None, 0))
    scaled = None if spec.scale_format is None else spec.scale_format.name
    return (
        spec.a_format.name in types
        and spec.b_format.name in types
        and result in ("", spec.d_format.name)
        and scaled == scale
        and (scale is None or spec.scale_block == block)
    )


def is_type_word(word: str) -> bool:
    """Whether a word means types of a and b, on whatever architecture."""
    factors = word.strip().lower().partition("+")[0]
    return factors in TYPE_WORDS or factors in SCALED_WORDS or factors in FORMATS


def _opcode_of(name: str) -> str:
    """A name without the types and the number of products, in capitals, that the house adds to an opcode in lower case
    (`vfqwbdota.alt.vv.E4M3.n8`), or after the first point (`FMOPA.F32.F16`)."""
    words = name.split(".")
    kept = (
        [w for w in words if w.islower() and not re.fullmatch(r"n\d+", w)]
        if words[0].islower()
        else words[:1]
    )
    return ".".join(kept).lower()


def _matcher(pattern: str) -> re.Pattern[str]:
    """Return an expression that matches the canonical names that a pattern, or the beginning of a name, means."""
    name = canonical_name(pattern)
    in_full = re.search(r"[*?[]", name) or any(label in name.split(".") for label in TYPE_SETS)
    text = fnmatch.translate(name if in_full else f"{name}*")
    for label, types in TYPE_SETS.items():
        text = text.replace(label, f"(?:{'|'.join(sorted(types))})")
    return re.compile(text)


#: How an architecture stands whose instructions a text defines, and nobody has run, as far as this house knows.
SPECIFIED = "specified, never run"


@dataclass(frozen=True, repr=False)
class Revision(ShortRepr):
    """Another reading of an architecture, where sources differ (docs/semantics.md §9)."""

    name: str
    summary: str
    #: the instruction as this source has it; None if the source does not have it
    revise: Callable[[Instruction], Instruction | None]


class Architecture(Tabular):
    """A GPU architecture, read-only: `ampere["HMMA.16816.F32"]`, `ampere.find("HMMA")`, `ampere.instructions`.

    It iterates over its instructions and has as many items; `keys()` are their names, as SASS or MFMA has them.  Names
    are taken in any case, PTX names too; `in` says whether a name would be found.
    """

    def __init__(
        self,
        name: str,
        gpus: str,
        instructions: Iterable[Instruction],
        revisions: Iterable[Revision] = (),
        exact: Mapping[str, str] | None = None,
        standing: str = "",
        unsettled: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.gpus = gpus
        self.standing = (
            standing  #: what is behind all of it, where that is less than a recording: `SPECIFIED`
        )
        self.unsettled = dict(
            unsettled or {}
        )  #: what is not modelled, since no text or machine has said all of it
        self.exact = dict(exact or {})  #: integer instructions, which are not modelled: what each computes
        self.instructions = tuple(instructions)
        self.revisions = {revision.name: revision for revision in revisions}
        self._by_name: dict[str, Instruction] = {}
        for instruction in self.instructions:
            for spelling in (instruction.name, *instruction.aliases):
                key = canonical_name(spelling)
                if key in self._by_name:
                    raise ValueError(f"{name} lists {spelling} twice")
                self._by_name[key] = instruction

    def __repr__(self) -> str:
        return f"<Architecture {self.name} ({self.gpus}): {counted(len(self), 'instruction')}>"

    def _repr_html_(self) -> str:
        head = "instruction", "m×n×k", "types", "algorithm", "parameters"
        rows = [
            (i.name, f"{i.m}×{i.n}×{i.k}", i.spec.types, i.algorithm, i.parameters.describe() + i.spec.signs)
            for i in self
        ]
        title = html_title(self.name, self.gpus)
        more = f'ARCHITECTURES["{self.name}"].table()'
        return title + html_folded(
            counted(len(self), "instruction"), html_table(head, rows, more), shown=True
        )

    def __str__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def keys(self) -> tuple[str, ...]:
        """The names of its instructions."""
        return tuple(each.name for each in self.instructions)

    def values(self) -> tuple[Instruction, ...]:
        return self.instructions

    def items(self) -> tuple[tuple[str, Instruction], ...]:
        return tuple((each.name, each) for each in self.instructions)

    def _ipython_key_completions_(self) -> list[str]:
        return [name for each in self.instructions for name in (each.name, *each.aliases)]

    def rows(self) -> list[dict[str, object]]:
        """A dict of plain values for each instruction."""
        return [each.row() for each in self.instructions]

    def find(self, pattern: str) -> tuple[Instruction, ...]:
        """The instructions that a name, a pattern or the beginning of a name means, in the order of the table.

        A name in full means that one instruction; `*`, `?` and `[…]` are those of a shell; `f8type` and `f8f6f4type`
        stand for any type of theirs; a type of a and b, such as `fp8` or `e4m3+fp32`, means the instructions that take
        it (`takes`); anything else is what a name or a PTX name starts with: `HMMA`, `mma.m16n8k16`.
        """
        exact = self._find(pattern)
        if exact is not None:
            return (exact,)
        if several := self.of_opcode(pattern) or self.of_types(pattern):
            return several
        matcher = _matcher(pattern)
        return tuple(
            each
            for each in self.instructions
            if any(matcher.match(canonical_name(name)) for name in (each.name, *each.aliases))
        )

    def of_types(self, word: str) -> tuple[Instruction, ...]:
        """The instructions whose a and b are of the types that a word means (`takes`); empty for every other name."""
        return tuple(each for each in self.instructions if takes(each, word)) if is_type_word(word) else ()

    def meant(self, name: str) -> Instruction:
        """The instruction that a name means, or a type of a and b that one function of this architecture takes.

        Where several instructions are that function, at one K or chained, it is the first of them in the table.  Raises
        UnknownInstructionError; where several functions take the type, its message lists them.
        """
        if name in self or not is_type_word(name):
            return self[name]
        functions = {each.spec.replace(k=each.spec.period): each for each in reversed(self.of_types(name))}
        if len(functions) == 1:
            return next(iter(functions.values()))
        if not functions:
            takes_ = ", ".join(dict.fromkeys(str(each.a_format) for each in self.instructions))
            raise UnknownInstructionError(f"no instruction of {self.name} takes {name}; a is one of {takes_}")
        shown = [each.name for each in reversed(functions.values())]
        more = f", … ({len(shown)} in all, `mmaformal list {self.name} {name}`)" if len(shown) > 4 else ""
        raise UnknownInstructionError(
            f"{name} means {len(shown)} functions of {self.name}: {', '.join(shown[:4])}{more}; name one of them"
        )

    def plainest(self, word: str) -> Instruction:
        """The instruction that a person most likely means by a type, of those that take it (`of_types`).

        The unit's own arithmetic before what is lowered to another type's, a and b of one type, e4m3 before e5m2, the
        widest c, the most products; the first in the table of those.  Raises UnknownInstructionError if there is none.
        """
        found = self.of_types(word)
        if not found:
            return self.meant(word)
        return min(
            found,
            key=lambda i: (
                i.parameters.made_of(i.spec) is not None,
                i.a_format != i.b_format,
                i.a_format.name,
                -i.c_format.storage_bits,
                -i.k,
            ),
        )

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __getitem__(self, name: str) -> Instruction:
        if not isinstance(name, str):
            raise TypeError(
                f"{self.name}[…] takes a name, such as {self.instructions[0].name!r}, not {name!r}"
            )
        instruction = self._find(name)
        if instruction is None:
            raise UnknownInstructionError(self._not_found(name))
        return instruction

    def revision(self, name: str) -> Architecture:
        """The architecture as an earlier source has it: `hopper.revision("paper-v1")`; "default" is this one.

        The result is called `hopper@paper-v1`, which `ARCHITECTURES` finds too.  Raises UnknownRevisionError.
        """
        if name == "default":
            return self
        if name not in self.revisions:
            has = ", ".join(["default", *self.revisions])
            raise UnknownRevisionError(f"{self.name} has no revision {name!r}: it has {has}")
        full_name = f"{self.name}@{name}"
        revised = (self.revisions[name].revise(instruction) for instruction in self.instructions)
        return Architecture(
            full_name,
            self.gpus,
            (replace(each, architecture=full_name) for each in revised if each is not None),
            exact=self.exact,
            standing=self.standing,
            unsettled=self.unsettled,
        )

    def _find(self, name: str) -> Instruction | None:
        key = canonical_name(name)
        found = self._by_name.get(key)
        return found or self._find_sized(key) or self._find_configured(key)

    def _find_configured(self, key: str) -> Instruction | None:
        """An instruction that may be configured for many K is in the table with one of them."""
        name, _, k = key.rpartition(".k")
        base = self._by_name.get(name)
        if base is None or not k.isdecimal() or int(k) not in base.depths:
            return None
        return base.configured(int(k))

    def _find_sized(self, key: str) -> Instruction | None:
        """An instruction that comes in many sizes is in the table in one of them."""
        shape = SHAPE.search(key)
        if shape is None:
            return None
        m, n = int(shape["m"] or shape["M"]), int(shape["n"] or shape["N"])
        for base_m, base_n in {(each.m, each.n) for each in self.instructions if each.sizes is not None}:
            base = self._by_name.get(key.replace(shape[0], respell(shape, base_m, base_n)))
            if base is not None and base.sizes is not None and (m, n) in base.sizes:
                return base.sized(m, n)
        return None

    def of_opcode(self, name: str) -> tuple[Instruction, ...]:
        """Return what a bare UTC… opcode, as SASS has it (`UTCHMMA`, `UTCOMMA.2CTA.4X`), may be: it takes types and
        size from a descriptor (MMA-Sim, appendix B).  Empty for every other name.

        .4X is 16 products to a scale, UTCOMMA without it 32; .2CTA is `.cta_group::2` (both read off nvdisasm).  An
        opcode with words in parentheses after it means the names that begin with it.
        """
        said = re.fullmatch(r"(\S+) \(.*", name.strip().lower())
        if said:  # as recordings of emulators write it: `BFMOPA (widening, 2-way, BF16 to FP32)`
            return tuple(each for each in self.instructions if _opcode_of(each.name) == said[1])
        opcode = re.fullmatch(r"(utc[hqo]mma)(\.2cta)?(\.4x)?", name.strip().lower())
        if opcode is None:
            return ()
        block = {"utcomma": 16 if opcode[3] else 32}.get(opcode[1])
        found = [each for each in self.instructions if each.name.lower().startswith(f"{opcode[1]}.")]
        fits = (each for each in found if block in (None, each.spec.scale_block))
        return () if opcode[3] and block is None else tuple(fits)

    @property
    def exact_in_words(self) -> str:
        """Its instructions that round nothing, for a person; empty if none are known."""
        kinds: dict[str, list[str]] = {}
        for name, what in self.exact.items():
            kinds.setdefault(what, []).append(name)
        said = "; ".join(f"{', '.join(names)} ({what})" for what, names in kinds.items())
        return f"exact, and not modelled: {said}" if said else ""

    def _not_found(self, name: str) -> str:
        from mmaformal.architectures import ARCHITECTURES

        lines = [f"{self.name} has no instruction {name!r}."]
        if found := self.of_opcode(name):
            shown = ", ".join(each.name for each in found[:4]) + (", …" if len(found) > 4 else "")
            why = "is said without its types" if "(" in name else "takes its types from a descriptor"
            return f"{lines[0]} {name} {why}; with types it is one of {shown}."
        if (integers := self.exact.get(name.strip().upper())) is not None:
            return f"{name} of {self.name} is exact ({integers}): it rounds nothing, and is not modelled."
        open_ = [what for which, what in self.unsettled.items() if name.upper() in which.split(", ")]
        lines += [f"Not settled: {what}." for what in open_]
        several = self.find(name)
        near = difflib.get_close_matches(canonical_name(name), self._by_name, n=4, cutoff=0.5)
        names = [each.name for each in several] or list(dict.fromkeys(self._by_name[x].name for x in near))
        if names:
            more = f", … ({len(names)} start so)" if len(names) > 4 else ""
            lines.append(f"Nearest on {self.name}: {', '.join(names[:4])}{more}.")
        else:
            lines.append(f"`mmaformal list {self.name}` shows what it has.")
        owners = [other.name for other in ARCHITECTURES.values() if name in other]
        if owners:
            lines.append(f"{name} is on: {', '.join(owners)}.")
        return " ".join(lines)


class ArchitectureTable(Mapping[str, Architecture], Tabular):
    """Architectures by name, in order of age; each is built when first asked for.

    `hopper@paper-v1` is the revision "paper-v1" of hopper; revisions are found, but not listed, and so are those that
    are `unlisted`.  Names are taken in any case, and so are names of devices (`products`): `h100` is hopper.  Raises
    UnknownArchitectureError or UnknownRevisionError, which are KeyErrors.
    """

    def __init__(
        self,
        builders: Mapping[str, Callable[[], Architecture]],
        unlisted: Mapping[str, Callable[[], Architecture]] | None = None,
    ) -> None:
        self._builders = dict(builders)
        self._unlisted = dict(unlisted or {})
        self._built: dict[str, Architecture] = {}
        self.added: set[str] = set()  #: names of those that no release has

    def __getitem__(self, name: str) -> Architecture:
        base, _, revision = name.strip().lower().partition("@")
        known = self.canonical(base)
        if known is None:
            raise UnknownArchitectureError(self.not_found(name))
        spelled = f"{known}@{revision}" if revision else known
        if spelled not in self._built:
            builders = self._builders | self._unlisted
            self._built[spelled] = self[known].revision(revision) if revision else builders[known]()
        return self._built[spelled]

    def canonical(self, name: str) -> str | None:
        """The name of the architecture that a name means, without its revision; None if there is none."""
        names = [*self._builders, *self._unlisted]
        if (spelled := name.strip().lower()) in names:
            return spelled
        key = products.squeezed(name)
        meant = next(
            (each for each in names if products.squeezed(each) == key), products.architecture_of(name)
        )
        return meant if meant in names else None

    def add(self, architecture: Architecture) -> None:
        """List one more, under its name; `models.known` takes it away again."""
        self._builders[architecture.name.lower()] = lambda: architecture
        self.added.add(architecture.name.lower())

    def remove(self, architecture: Architecture) -> None:
        name = architecture.name.lower()
        del self._builders[name]
        self.added.remove(name)
        for built in [each for each in self._built if each.partition("@")[0] == name]:
            del self._built[built]

    def not_found(self, name: str) -> str:
        """Say in one line that there is no such architecture, which there are, and which was meant."""
        base = name.strip().partition("@")[0]
        if (why := products.why_not_modelled(base)) is not None:
            return f"no model of {base}: {why} (`mmaformal list --devices` has what is)"
        if (near := products.nearest_name(base, [*self._builders, *self._unlisted])) is not None:
            return f"no architecture {base!r}; did you mean {near}?"
        return f"no architecture {base!r}; there are {', '.join(self._builders)}"

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'architecture')}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        rows = [(each.name, each.gpus, len(each)) for each in self.values()]
        return html_table(("architecture", "devices", "instructions"), rows)

    def _ipython_key_completions_(self) -> list[str]:
        return [name for base in self for name in (base, *(f"{base}@{r}" for r in self[base].revisions))]

    def rows(self) -> list[dict[str, object]]:
        """The rows of all architectures."""
        return [row for architecture in self.values() for row in architecture.rows()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)
