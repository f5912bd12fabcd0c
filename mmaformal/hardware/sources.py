"""Sources of a design: its files, file lists (`-f`), include folders, defines, parameters and its top module."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, reason

#: Suffixes of programs, a function of which is the design.
PROGRAMS = (".c", ".cc", ".cpp", ".py")
_FUNCTION = re.compile(r"(.+\.\w+):([A-Za-z_$.][\w$.]*)")
#: Suffixes of files that only SystemVerilog has.
_SYSTEMVERILOG = (".sv", ".svh")
#: Lists that name each other deeper than this are taken for a circle.
_MOST_DEEP = 32
#: How names of file lists end.
_LISTS = (".f", ".vc", ".flist")
_COMMENT = re.compile(r"/\*.*?\*/|(?<!\S)//[^\n]*|(?<!\S)#[^\n]*", re.DOTALL)
_MODULE = re.compile(r"^\s*module\s+(\w+)", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$\((\w+)\)|\$(\w+)")
#: Options of simulators and synthesis tools in file lists that say nothing about the design's text.
_IGNORED = (
    "+libext+",
    "-timescale",
    "-sverilog",
    "-full64",
    "-sv",
    "-64",
    "+lint",
    "+nowarn",
    "-Wno-",
    "-Wall",
)


@dataclass(frozen=True, repr=False)
class Sources(ShortRepr):
    """The text of a design, and how it is read."""

    files: tuple[Path, ...]
    top: str | None = None
    includes: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()  #: `NAME` or `NAME=VALUE`
    parameters: Mapping[str, int | str] = field(default_factory=dict)  #: of `top`
    lists: tuple[Path, ...] = ()  #: file lists not read yet

    @property
    def systemverilog(self) -> bool:
        """Whether some file is SystemVerilog by its name."""
        return any(path.suffix in _SYSTEMVERILOG for path in self.files)

    @property
    def btor2(self) -> bool:
        """Whether the design is one file of BTOR2."""
        return len(self.files) == 1 and self.files[0].suffix in (".btor", ".btor2")

    @property
    def program(self) -> bool:
        """Whether the design is the function `top` of a program."""
        return any(path.suffix in PROGRAMS for path in self.files)

    def complete(self) -> Sources:
        """The sources with their lists read and every file there; the function of `dot4.c:dot4` is `top`.

        Raises HardwareError for what cannot be found.
        """
        found = self._with_function()
        for path in self.lists:
            found = _with_list(found, path, Path(), 0)
        found = replace(found, lists=())
        if not found.files:
            raise HardwareError("no file of a design is named: give one, or a list of them with -f")
        for path in found.files:
            if path.is_dir():
                raise HardwareError(f"'{path}' is a folder: name the files in it, or a list of them with -f")
            if not path.is_file():
                raise HardwareError(f"there is no file {path}")
            if path.suffix in _LISTS:
                raise HardwareError(f"{path} is a list of files: give it with -f")
        for folder in found.includes:
            if not folder.is_dir():
                raise HardwareError(f"there is no folder {folder} of include files")
        if found.program and (len(found.files) > 1 or not found.top):
            first = found.files[0].name
            raise HardwareError(f"a program is one file, and a function of it is named, as {first}:NAME")
        if found.parameters and not found.top:
            raise HardwareError("parameters are of a module that is named: give it with --top")
        for name in (*map(str, (*found.files, *found.includes)), *found.defines, found.top or ""):
            if re.search(r'["\n;]', name):
                raise HardwareError(f"yosys cannot be given the name {name!r}")
        return found

    def modules(self) -> list[str]:
        """The names of modules in the files, as far as they are written out."""
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in self.files)
        return [name for text in texts for name in _MODULE.findall(_COMMENT.sub(" ", text))]

    def _with_function(self) -> Sources:
        """The sources with the function that is named behind a program's file, if one is."""
        match = _FUNCTION.fullmatch(str(self.files[0])) if len(self.files) == 1 else None
        if match is None or not match[1].endswith(PROGRAMS):
            return self
        return replace(self, files=(Path(match[1]),), top=match[2])


def _with_list(sources: Sources, path: Path, base: Path, depth: int) -> Sources:
    """The sources with what a file list names; `base` is the folder that its names are relative to."""
    if depth > _MOST_DEEP:
        raise HardwareError(f"{path} is a file list that names itself")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"the file list {path} cannot be read: {reason(error)}") from None
    words = iter(_words(text, path))
    for word in words:
        sources = _with_word(sources, word, words, path, base, depth)
    return sources


def _with_word(
    sources: Sources, word: str, words: Iterator[str], path: Path, base: Path, depth: int
) -> Sources:
    """The sources with one word of a file list, and those after it that belong to it."""

    def after() -> str:
        found = next(words, None)
        if found is None:
            raise HardwareError(f"{path}: {word} is the last word, and something has to follow it")
        return found

    if word in ("-f", "-F", "-file"):
        other = base / after()
        return _with_list(sources, other, other.parent if word == "-F" else base, depth + 1)
    if word.startswith("+incdir+"):
        folders = tuple(base / each for each in word.split("+")[2:] if each)
        return replace(sources, includes=(*sources.includes, *folders))
    if word.startswith("-I"):
        return replace(sources, includes=(*sources.includes, base / (word[2:] or after())))
    if word.startswith("+define+"):
        return replace(sources, defines=(*sources.defines, *(x for x in word.split("+")[2:] if x)))
    if word.startswith("-D"):
        return replace(sources, defines=(*sources.defines, word[2:] or after()))
    if word in ("--top", "-top", "--top-module"):
        return replace(sources, top=sources.top or after())
    if word == "-v":
        return replace(sources, files=(*sources.files, base / after()))
    if word.startswith(_IGNORED):
        return sources
    if word[0] in "-+":
        raise HardwareError(f"{path}: {word} is not understood; take it out of the list")
    return replace(sources, files=(*sources.files, base / word))


def _words(text: str, path: Path) -> list[str]:
    """The words of a file list, without comments, variables of the environment put in."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3]
        if name not in os.environ:
            raise HardwareError(f"{path}: the variable {name} is not set in the environment")
        return os.environ[name]

    plain = _VARIABLE.sub(value, _COMMENT.sub(" ", text))
    try:
        return shlex.split(plain)
    except ValueError as error:
        raise HardwareError(f"{path}: {error}") from None


def sources_of(
    files: str | Path | Sequence[str | Path],
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
) -> Sources:
    """Sources of a file, or of several."""
    paths = [files] if isinstance(files, str | Path) else files
    return Sources(tuple(map(Path, paths)), top, (), tuple(defines), dict(parameters or {}))
