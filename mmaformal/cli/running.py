"""How a command ends: its exit status, and what is said of an error, in one line.

Status  meaning
0       an answer: Equal, Different, Holds, all proved, every row matches, or what was asked to be shown
1       refuted: Fails, a row that does not match, two encodings that disagree
2       wrong use: what was asked for makes no sense, or a file cannot be read or written
3       not settled within the limits given
70      a defect of mmaformal; the traceback is kept in a file, or is printed where MMAFORMAL_TRACEBACK is set
130     interrupted by Ctrl-C
141     the reader of stdout left before all was said
"""

from __future__ import annotations

import dis
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import cast

import click
from click.shell_completion import shell_complete

from mmaformal.cli import streams
from mmaformal.cli.terminal import styled, width
from mmaformal.display import TABLES, fitting, folded
from mmaformal.extras import how_to_install
from mmaformal.solver.deadline import Deadline

SETTLED, REFUTED, WRONG_USE, UNKNOWN, DEFECT, INTERRUPTED, READER_LEFT = 0, 1, 2, 3, 70, 130, 141

#: Asks for completions, as click's shell functions do.
COMPLETE_VARIABLE = "_MMAFORMAL_COMPLETE"

#: Where it is set, the traceback of a defect is printed rather than kept in a file.
TRACEBACK_VARIABLE = "MMAFORMAL_TRACEBACK"


class UsageError(click.UsageError):
    """Wrong use of a command, told in one line."""


@contextmanager
def wrong_use(*errors: type[Exception]) -> Iterator[None]:
    """Let what these exceptions say be wrong use of the command."""
    try:
        yield
    except errors as error:
        raise UsageError(str(error)) from None


class CommandTable(Mapping[str, click.Command]):
    """The commands by their names; the module of each is imported once it is looked up."""

    def __init__(self, lines: Mapping[str, str]) -> None:
        self._lines = lines

    def __getitem__(self, name: str) -> click.Command:
        line, word = self._lines[name], name.replace("-", "_")
        found = vars(import_module(f"mmaformal.cli.{word}"))
        command = found.get(word) or found[f"{word}_"]
        assert isinstance(command, click.Command)
        command.short_help = line
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


class Commands(click.Group):
    """Commands that help lists in groups and in their order; it says which one was meant."""

    def __init__(self, name: str | None = None, **attributes: object) -> None:
        super().__init__(name, **attributes)  # type: ignore[arg-type]
        self.groups: dict[str, dict[str, str]] = {}  #: a line for each command, by the title of its group

    def grouped(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        """Let these be the commands: a line for each name, by the titles of groups."""
        self.groups = {title: dict(lines) for title, lines in groups.items()}
        table = CommandTable({name: x for lines in groups.values() for name, x in lines.items()})
        self.commands = cast("MutableMapping[str, click.Command]", table)  # click only reads it

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        wide = max(map(len, self.commands))
        for title, lines in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{wide}}", line) for name, line in lines.items()])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            near = get_close_matches(name.lower(), self.commands, n=1)
            hint = f"did you mean {near[0]}?" if near else f"`{ctx.command_path} --help` lists the commands"
            raise UsageError(f"no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def run_command(command: click.Command, argv: Sequence[str], name: str = "mmaformal") -> int:
    """Run a command, whatever happens; returns the exit status."""
    streams.prepare_streams()
    asked = os.environ.get(COMPLETE_VARIABLE)
    if asked:
        return shell_complete(command, {}, name, COMPLETE_VARIABLE, asked)
    try:
        with Deadline():  # so that no Ctrl-C is lost
            with command.make_context(name, list(argv)) as context, fitting(width()):
                status = command.invoke(context)
            sys.stdout.flush()
        return int(status or SETTLED)
    except click.exceptions.Exit as end:  # of --help and --version
        return end.exit_code
    except click.ClickException as error:
        return _tell(_words(error, command), WRONG_USE)
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted", INTERRUPTED, prefix="")
    except BrokenPipeError:
        streams.discard(sys.stdout)
        return SETTLED if {"--help", "-h", "--version", "-V", "help"} & set(argv) else READER_LEFT
    except OSError as error:
        return _tell(_system_words(error), WRONG_USE)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    """Say what went wrong: what a user can do something about in a line, anything else as a defect of ours."""
    if isinstance(error, ImportError):
        missing = how_to_install(error)
        return _tell(missing, WRONG_USE) if missing else _defect(error)
    from mmaformal import architectures as known
    from mmaformal.solver.portfolio import NoSolverError
    from mmaformal.witness import WitnessError

    if isinstance(error, WitnessError):
        return _tell(str(error), REFUTED)
    unknown = known.UnknownArchitectureError, known.UnknownInstructionError, known.UnknownRevisionError
    if isinstance(error, (*unknown, NoSolverError)):
        return _tell(str(error) or type(error).__name__, WRONG_USE)
    if isinstance(error, ValueError) and _is_of_a_check(error):
        return _tell(as_options(str(error)), WRONG_USE)
    return _defect(error)


#: Keywords of functions that messages name, and the options that a command has for them.
_KEYWORDS = (
    (re.compile(r'\b([a-d])_format="([\w.]+)"(,?)'), r"--\1-format \2"),
    (re.compile(r"(?<!')\b([a-d])_format\b(?![='])"), r"--\1-format"),
    (re.compile(r"\bleave (against|device) out\b"), r"leave --\1 out"),
    (re.compile(r"\bgive (device), or (against), not both"), r"give --\1 or --\2, not both"),
    (re.compile(r"\bGive it as C\b"), "Give it as --c FILE"),
)


def as_options(text: str) -> str:
    """Returns a message of a function as a command says it: `a_format="bf16"` is `--a-format bf16`.

    A line of Python, which makes a structure, stays as it is.
    """
    return "\n".join(line if "Structure.named(" in line else _as_option(line) for line in text.split("\n"))


def _as_option(line: str) -> str:
    for keyword, option in _KEYWORDS:
        line = keyword.sub(option, line)
    return line


def _is_of_a_check(error: ValueError) -> bool:
    """Whether it comes from a `raise` of ours: of a check, and not of an operation that failed deep inside."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_globals.get("__name__", "").startswith("mmaformal."):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def answered(text: str, status: int) -> int:
    """Print an answer; returns the status, which is that of the answer whether its reader saw it all or not.

    Lines that a terminal does not hold are folded; those of JSON are for a program.
    """
    for_people = not text.startswith(("{", "["))
    return printed(styled(folded(text)) if for_people else text, status)


def printed(text: str, status: int) -> int:
    """Print a text as it stands, such as a program; returns the status, as `answered` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        streams.discard(sys.stdout)
    return status


def tabulated(table: str, rows: Sequence[Mapping[str, object]], status: int) -> int:
    """Print rows of the same keys as `--csv` or `--latex` asks for (`options.table`); returns the status."""
    return printed(TABLES[table](rows).removesuffix("\n"), status)


def usage(context: click.Context) -> str:
    """How a command is called, but for its options."""
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *(each for each in pieces if each != "[OPTIONS]")])


def _words(error: click.ClickException, command: click.Command) -> str:
    """Click's message in one line, with where to read on."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    if isinstance(error, UsageError):
        return message
    if context is None:  # click's parser, of an option that lacks a word
        missing = _lacking(command, error.option_name) if isinstance(error, click.BadOptionUsage) else ""
        return message[:1].lower() + message[1:] + missing
    if isinstance(error, click.NoSuchOption) and _takes(context.command, error.option_name):
        return f"{error.option_name} stands after the COMMAND: `{context.command_path} COMMAND … {error.option_name} …`"
    argument = isinstance(getattr(error, "param", None), click.Argument)
    if argument or "unexpected extra argument" in message:
        message = f"{message}: `{usage(context)}`"
    return f"{message[:1].lower()}{message[1:]} (`{context.command_path} --help` says more)"


def _lacking(group: click.Command, option: str) -> str:
    """Which words an option of a command of the group takes, with examples, if it takes several."""
    commands = group.commands.values() if isinstance(group, click.Group) else (group,)
    for parameter in (x for command in commands for x in command.params if option in x.opts):
        if parameter.nargs > 1 and parameter.metavar == "ARCH INSTRUCTION":
            examples = f"{option} volta HMMA.884.F32.F32, {option} datapath 'fma(k=1,a=fp16,rho=IEEE-FP16)'"
            return f", {parameter.metavar}: {examples}"
    return ""


def _takes(group: click.Command, option: str) -> bool:
    """Whether a command of the group has the option."""
    commands = group.commands.values() if isinstance(group, click.Group) else ()
    return any(option in parameter.opts for command in commands for parameter in command.params)


def _system_words(error: OSError) -> str:
    """`No such file or directory: x.npz`, without the number; what mmaformal raises has a text of its own."""
    if error.strerror is None:
        return str(error)
    return f"{error.strerror}: {error.filename}" if error.filename else f"cannot write: {error.strerror}"


def _tell(message: str, status: int, prefix: str = "mmaformal: ") -> int:
    """One line on stderr, which a terminal gets folded, after what was printed before on stdout."""
    try:
        sys.stdout.flush()
    except OSError as error:
        streams.discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return READER_LEFT if status in (SETTLED, WRONG_USE) else status
        message = _system_words(error)
    try:
        print(folded(prefix + " ".join(message.split()), width(sys.stderr)), file=sys.stderr, flush=True)
    except OSError:
        streams.discard(sys.stderr)
    return status


def _defect(error: Exception) -> int:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
        return _tell(f"a defect of mmaformal, please report it: {what}", DEFECT)
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="mmaformal-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            print(f"mmaformal {' '.join(sys.argv[1:])}", file=file)
            traceback.print_exception(error, file=file)
        kept = f"please report it with {file.name}"
    except OSError:
        kept = f"please report it; {TRACEBACK_VARIABLE}=1 shows the traceback"
    return _tell(f"a defect of mmaformal, {kept}: {what[:300]}", DEFECT)
