"""Arguments and options that commands share: what they mean, how they are checked, how they complete."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar

import click
from click.shell_completion import CompletionItem

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.architectures import products as devices
from mmaformal.architectures.base import is_type_word
from mmaformal.cli.running import UsageError, usage
from mmaformal.cli.terminal import said
from mmaformal.instruction import Instruction
from mmaformal.rounding import CONVERSIONS, Conversion
from mmaformal.solver.portfolio import BACKENDS
from mmaformal.spec import MOST_PRODUCTS, parameter_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mmaformal.solver.evidence import EvidenceStore

    ParamKind = click.ParamType[object]
else:  # not generic in every version
    ParamKind = click.ParamType

Command = TypeVar("Command", bound=Callable[..., object])

#: Beyond these a number is a slip of the pen, and clocks and address spaces overflow.
_MOST_SECONDS, _MOST_MEGABYTES, _MOST_JOBS = 1e8, 1 << 24, 1024
_MOST = 1 << 30
_MOST_OUTPUTS = 1 << 50


# ---- kinds of values ---------------------------------------------------------------------------------------


def _starting(words: Mapping[str, str] | list[str], incomplete: str) -> list[CompletionItem]:
    helps = words if isinstance(words, Mapping) else {}
    return [CompletionItem(w, help=helps.get(w)) for w in words if w.lower().startswith(incomplete.lower())]


class ArchitectureName(ParamKind):
    name = "architecture"

    def convert(
        self, value: Architecture | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Architecture | str:
        if isinstance(value, Architecture):
            return value
        if ARCHITECTURES.canonical(value.partition("@")[0]) is None:
            raise UsageError(_instead_of_architecture(value, ctx) or ARCHITECTURES.not_found(value), ctx)
        if value.endswith("@"):
            raise UsageError(f"{value!r} names no revision; `mmaformal list` shows those there are", ctx)
        return ARCHITECTURES[value]

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = {a.name: a.gpus for a in ARCHITECTURES.values()}
        if incomplete and not any(name.startswith(incomplete.lower()) for name in names):
            names = {
                name.replace(" ", "-"): each.architecture for each in devices.PRODUCTS for name in each.names
            }
        if "@" in incomplete:
            names = {
                f"{a.name}@{r}": x.summary for a in ARCHITECTURES.values() for r, x in a.revisions.items()
            }
        return _starting(names, incomplete)


def _instead_of_architecture(value: str, ctx: click.Context | None) -> str | None:
    """The message where an instruction or a type stands in an architecture's place; None for other names."""
    if ctx is None or not (is_type_word(value) or any(value in each for each in ARCHITECTURES.values())):
        return None
    return f"{value} is no ARCH, but an INSTRUCTION: `{usage(ctx)}`"


#: Names of files that are hardware designs, and functions of programs that are as good.
_DESIGN = re.compile(r".+(\.(sv|v|btor2?|c|cc|cpp)|\.(c|cc|cpp|py):[\w$.]+)")


def is_design_file(name: str) -> bool:
    """Whether a word names the file of a design, or a function of a program, by its suffix."""
    return _DESIGN.fullmatch(name) is not None


class _ArchitectureOrDesign(ArchitectureName):
    """An architecture, or the file of a design."""

    name = "architecture or design"

    def convert(
        self, value: Architecture | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Architecture | str:
        if isinstance(value, str) and is_design_file(value):
            return value
        return super().convert(value, param, ctx)


class _InstructionName(ParamKind):
    """A name; which architecture it has to be on, the command knows."""

    name = "instruction"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            raise UsageError("the name of an INSTRUCTION is empty; `mmaformal list` shows the names", ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        chosen = ctx.params.get("arch") or ctx.params.get("x")
        names: dict[str, None] = {}
        for architecture in [chosen] if isinstance(chosen, Architecture) else ARCHITECTURES.values():
            names |= dict.fromkeys(i.name for i in architecture)
        return _starting(list(names), incomplete)


class _ArchitectureOrInstruction(ParamKind):
    name = "architecture or pattern"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        architectures = ARCHITECTURE.shell_complete(ctx, param, incomplete)
        return architectures or INSTRUCTION.shell_complete(ctx, param, incomplete)


class _Number(ParamKind):
    """An integer or a number of seconds within a range."""

    def __init__(self, name: str, unit: str, most: float, whole: bool = True) -> None:
        self.name, self.unit, self.most, self.whole = name, unit, most, whole

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        with contextlib.suppress(ValueError, OverflowError):
            number = int(value) if self.whole else float(value)
            if (number >= 1 if self.whole else number > 0) and number <= self.most and not math.isnan(number):
                return number
        least = "of 1 or more" if self.whole else "above 0"
        bound = f"; at most {self.most:,.0f}" if _exceeds(value, self.most) else ""
        option = param.opts[0] if param is not None else self.name
        raise UsageError(f"{option} is a number of {self.unit} {least}, not {str(value)[:40]!r}{bound}", ctx)


def _exceeds(value: str | float, most: float) -> bool:
    try:
        return float(value) > most
    except (ValueError, OverflowError):
        return False


#: a parameter, and its value or the name of that
ParameterChange: TypeAlias = tuple[str, Conversion | bool | int | str | None]


class _Replacement(ParamKind):
    """`F=23` → ("F", 23); a ρ or a format by its name; e_zero `fields` leaves zeros the exponent of their fields."""

    name = "replacement"

    def convert(
        self, value: str | ParameterChange, param: click.Parameter | None, ctx: click.Context | None
    ) -> ParameterChange:
        if isinstance(value, tuple):
            return value
        name, equals, text = (part.strip() for part in value.partition("="))
        name = "rho" if name == "ρ" else name
        if not (name.isidentifier() and equals and text):
            raise UsageError(f"--replace is NAME=VALUE, F=23 for example, not {value!r}", ctx)
        if text == "fields":
            return name, None
        if text in CONVERSIONS:
            return name, CONVERSIONS[text]
        if text in ("true", "false"):
            return name, text == "true"
        with contextlib.suppress(ValueError):
            if abs(number := int(text)) <= _MOST:
                return name, number
            raise UsageError(f"--replace {value}: {text} is too large", ctx)
        return name, text  # the name of a format, or of nothing: the instruction tells

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _starting(["F=", "L=", "G=", "rho=", "e_zero=", "k="], incomplete)


class _Constraint(ParamKind):
    name = "constraint"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _starting(["finite", "gemm", "normal", "nonzero"], incomplete)


class _Readable(click.Path):
    """A file or folder to read; an empty name, as of a shell's variable that is not set, is none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        if value == "":
            raise UsageError("the name of a file is empty: is a variable not set?", ctx)
        return Path(value)


class _Writable(click.Path):
    """A file or folder to write to, tried before the work starts."""

    def __init__(self, folder: bool = False) -> None:
        super().__init__(path_type=Path, file_okay=not folder, dir_okay=folder)
        self.folder = folder

    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        path = Path(value)
        option = param.opts[0] if param is not None else "output"
        try:
            _try_folder(path) if self.folder else _try_file(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{option}: cannot write to {value!r}: {why}", ctx) from None
        return path


def _try_file(path: Path) -> None:
    new = not path.exists()
    with path.open("ab"):
        pass
    if new:
        path.unlink()


def _try_folder(path: Path) -> None:
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        trial = path / ".mmaformal"
        trial.touch()
        trial.unlink()
    finally:
        for folder in made:
            folder.rmdir()


class _Outputs(_Number):
    """A number of results, `1e9` for short."""

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        with contextlib.suppress(ValueError, OverflowError):
            if float(value).is_integer() and not str(value).isdecimal():
                value = int(float(value))
        return super().convert(value, param, ctx)


ARCHITECTURE = ArchitectureName()
ARCHITECTURE_OR_DESIGN = _ArchitectureOrDesign()
INSTRUCTION = _InstructionName()
ARCHITECTURE_OR_INSTRUCTION = _ArchitectureOrInstruction()
SECONDS = _Number("seconds", "seconds", _MOST_SECONDS, whole=False)
MEGABYTES = _Number("megabytes", "megabytes", _MOST_MEGABYTES)
PRODUCTS = _Number("products", "products", MOST_PRODUCTS)
PROCESSES = _Number("processes", "processes", _MOST_JOBS)
ROWS = _Number("rows", "rows", _MOST)
OUTPUTS = _Outputs("outputs", "results", _MOST_OUTPUTS)
FILE = _Readable()
OUTPUT_FILE = _Writable()
OUTPUT_FOLDER = _Writable(folder=True)


def _know_model(ctx: click.Context, _: click.Parameter, models: tuple[str, ...]) -> tuple[str, ...]:
    """Put models into the table of architectures while a command runs; returns them as they were given."""
    from mmaformal.architectures.models import ModelError, known_models, load

    for text in models:
        try:
            ctx.with_resource(known_models(load(text)))
        except ModelError as error:
            raise UsageError(f"--model: {error}", ctx) from None
    return models


# ---- options -----------------------------------------------------------------------------------------------


def arch(required: bool = True) -> Callable[[Command], Command]:
    return click.argument(
        "arch", metavar="ARCH" if required else "[ARCH]", type=ARCHITECTURE, required=required
    )


def name(required: bool = True) -> Callable[[Command], Command]:
    metavar = "INSTRUCTION" if required else "[INSTRUCTION]"
    return click.argument("name", metavar=metavar, type=INSTRUCTION, required=required)


json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def table_options(command: Command) -> Command:
    """`--csv` and `--latex`: how a table is printed (`display.TABLES`)."""
    latex = click.option("--latex", "table", flag_value="latex", help="Print a LaTeX table.")
    return click.option("--csv", "table", flag_value="csv", help="Print CSV.")(latex(command))


verbose = click.option("--verbose", "-v", is_flag=True, help="Print every product, step and obligation.")


class Renamed(click.Option):
    """An option that was called otherwise before: the old names are taken with a word on stderr, and are not shown."""

    def __init__(
        self, param_decls: Sequence[str] | None = None, *, old: Sequence[str] = (), **attributes: object
    ) -> None:
        super().__init__(param_decls, **attributes)  # type: ignore[arg-type]
        self.old = list(old)

    def add_to_parser(self, parser: object, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)  # type: ignore[arg-type]
        shown, name = self.opts, self.name
        try:
            for each in self.old:
                self.opts, self.name = [each], f"{name} {each}"
                super().add_to_parser(parser, ctx)  # type: ignore[arg-type]
        finally:
            self.opts, self.name = shown, name

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, object], args: list[str]
    ) -> tuple[object, list[str]]:
        given = dict(opts)
        for each in self.old:
            if (value := given.pop(f"{self.name} {each}", None)) is not None:
                if given.setdefault(str(self.name), value) is not value:
                    raise click.UsageError(f"{self.opts[0]}, and {each}, its old name: give one of them")
                if not ctx.resilient_parsing:
                    said(f"mmaformal: {each} is {self.opts[0]} now; the old name goes with the next version")
        found: tuple[object, list[str]] = super().handle_parse_result(ctx, given, args)
        return found


def ran_on(command: Command) -> Command:
    """`--device` and `--against`; `where_it_ran` has what they say."""
    command = click.option(
        "--against",
        type=(ARCHITECTURE, INSTRUCTION),
        metavar="ARCH INSTRUCTION",
        help="The one instruction that is to have made it.",
    )(command)
    said = "Where it ran: h100, 'RTX 4090', gfx942, …"
    return click.option("--device", type=ARCHITECTURE, metavar="ARCH", help=said)(command)


def format_options(*operands: str) -> Callable[[Command], Command]:
    """`--a-format FORMAT` and so on, of bit patterns and of wider floats."""

    def decorated(command: Command) -> Command:
        for each in reversed(operands):
            said = f"What {each.upper()}'s bit patterns, or wider floats, are: bf16, e4m3, float8_e5m2, …"
            command = click.option(f"--{each}-format", metavar="FORMAT", help=said)(command)
        return command

    return decorated


def scales(command: Command) -> Command:
    """`--scale-a` and `--scale-b`, block scales in files, how they lie, and of what format they are."""
    for given in (
        click.option("--scale-format", metavar="FORMAT", help="Of scales that are bytes: ue8m0 or ue4m3."),
        click.option(
            "--scale-layout",
            type=click.Choice(["auto", "plain", "padded", "tiles"]),
            default="auto",
            help="How scales lie: rows, rows padded to 128×4, or tiles of that.  [auto: by their shape]",
        ),
        click.option("--scale-b", type=FILE, metavar="FILE", help="Block scales of B."),
        click.option("--scale-a", type=FILE, metavar="FILE", help="Block scales of A, as ue8m0 of MX."),
    ):
        command = given(command)
    return command


chain = click.option(
    "--k",
    "chain",
    cls=Renamed,
    old=["--chain"],
    type=PRODUCTS,
    metavar="K",
    help="Chain the instruction to K products, d being the next c.",
)

replace = click.option(
    "--replace",
    "changes",
    type=_Replacement(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A hypothetical unit: change a parameter, as F=23, rho=RNE-FP32; repeatable.",
)


def model_options(told: bool) -> Callable[[Command], Command]:
    """`--model`; the command is given what was named, as `models`, where it is `told`."""
    return click.option(
        "--model",
        "models",
        multiple=True,
        metavar="FILE.py:NAME",
        is_eager=True,  # before the names of architectures are looked up
        expose_value=told,
        callback=_know_model,
        help="A unit of your own: an Architecture or Instruction of the file is an ARCH too; repeatable.",
    )


model = model_options(told=False)

where = click.option(
    "--where",
    type=_Constraint(),
    multiple=True,
    metavar="CONSTRAINT",
    help="finite, gemm (finite, c = 0), normal, nonzero, 'magnitude LOW HIGH [abc]', c=CODE, a3=CODE; repeatable.",
)

smtlib = click.option(
    "--smtlib", type=OUTPUT_FOLDER, metavar="DIR", help="Write what was proved as SMT-LIB 2 files."
)


def timeout(default: float, of: str = "for everything") -> Callable[[Command], Command]:
    return click.option(
        "--timeout",
        type=SECONDS,
        default=default,
        metavar="S",
        help=f"Seconds {of} (default {default:g}).",
    )


def memory(default: int) -> Callable[[Command], Command]:
    return click.option(
        "--memory",
        type=MEGABYTES,
        default=default,
        metavar="MB",
        help=f"Megabytes for each solver process (default {default}).",
    )


jobs = click.option(
    "--jobs", type=PROCESSES, metavar="N", help="Worker processes (default: one for each core)."
)

here = click.option("--jobs", type=PROCESSES, metavar="N", help="Worker processes (default: this one).")

cluster = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Workers of the Dask scheduler at tcp://…, or `local`: of one on this machine.",
)

solver = click.option(
    "--solver",
    "solvers",
    type=click.Choice(BACKENDS),
    multiple=True,
    help="Ask this solver only; repeatable (default: z3 and bitwuzla). What others proved before stays known.",
)


def evidence(command: Command) -> Command:
    """`--evidence FILE` and `--no-cache`."""
    command = click.option(
        "--no-cache", is_flag=True, help="Ask again what was asked before, and record nothing."
    )(command)
    return click.option(
        "--evidence",
        type=OUTPUT_FILE,
        metavar="FILE",
        help="Where to record, and look up, what was proved (SQLite; default: in the user's cache).",
    )(command)


# ---- what they stand for -----------------------------------------------------------------------------------


def instruction_of(
    architecture: Architecture,
    name: str,
    changes: tuple[ParameterChange, ...] = (),
    chain: int | None = None,
) -> Instruction:
    """The instruction meant, with its parameters changed, then chained; which one a type means is said on stderr.

    Raises UnknownInstructionError; UsageError for changes that make no sense of it.
    """
    if is_type_word(name) and name not in architecture:
        instruction = architecture.plainest(name)
        others = len(architecture.of_types(name)) - 1
        more = f" (`mmaformal list {architecture.name} {name}` has {others} more)" if others else ""
        said(f"mmaformal: {name} of {architecture.name} is {instruction.name}{more}")
    else:
        instruction = architecture[name]
    if changes:
        told = ", ".join(f"{key}={parameter_text(value)}" for key, value in changes)
        try:
            instruction = instruction.replace(**dict(changes))
        except (TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"--replace {told}: {instruction.label}: {error}") from None
    return instruction if chain is None else instruction.chained(chain)


class RanOn(TypedDict):
    """Where a product was made, as `explain` takes it."""

    device: Architecture | None
    against: Instruction | None


def where_it_ran(device: Architecture | None, against: tuple[Architecture, str] | None) -> RanOn:
    """Returns what `--device` and `--against` say.  Raises UsageError where both do."""
    if device is not None and against is not None:
        raise UsageError("--device and --against exclude each other")
    return {"device": device, "against": None if against is None else instruction_of(*against)}


@contextlib.contextmanager
def asked_workers(cluster: str | None, jobs: int | None) -> Iterator[Executor | None]:
    """The workers that `--cluster`, or `--jobs` alone, asks for; none where neither does."""
    if cluster is None and jobs is None:
        yield None
        return
    from mmaformal import executors

    with executors.workers(cluster, jobs) as executor:
        yield executor


@contextlib.contextmanager
def remembering_option(evidence: Path | None, no_cache: bool) -> Iterator[EvidenceStore | None]:
    """Within this block what is proved is recorded, and what was recorded is not asked again.

    Where the user's cache cannot be written, nothing is; a file that was named has to be a store of evidence.
    """
    from mmaformal.solver.evidence import EvidenceError, EvidenceStore, default_path, recording

    if evidence is not None and no_cache:
        raise UsageError("--evidence and --no-cache exclude each other")
    if no_cache:
        yield None
        return
    try:
        store = EvidenceStore(evidence or default_path())
    except EvidenceError as error:
        if evidence is not None:
            raise
        _say_once(f"mmaformal: nothing is remembered: {error} (--evidence FILE records elsewhere)")
        yield None
        return
    with store, recording(store):
        yield store


@cache
def _say_once(text: str) -> None:
    said(text)


def made_comparable(x: Instruction, y: Instruction) -> str | None:
    """How to make two instructions comparable that differ in K alone."""
    same = x.spec.types == y.spec.types and x.spec.scale_block == y.spec.scale_block
    if x.k == y.k or not same:
        return None
    return (
        f"{x.label} has K = {x.k}, {y.label} K = {y.k}: "
        f"--k {math.lcm(x.k, y.k)} chains both to equally many products"
    )
