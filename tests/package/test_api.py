"""One API: a command, its function and its file have one name; keywords and options are those of one list."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable

import pytest

import mmaformal
from mmaformal import ampere, hopper, listing, max_difference
from mmaformal.cli import app
from mmaformal.cli.options import Renamed
from mmaformal.hardware.module import HardwareError
from mmaformal.queries.identify import identify
from mmaformal.queries.verify import Prover
from mmaformal.recordings.archive import RecordingError
from mmaformal.renamed import lines

COMMANDS = dict(app.commands)

#: Commands that print what Python has as objects: `ARCHITECTURES`, an instruction, `dot_add`.
OF_THE_TERMINAL = {"list", "show", "run", "warm-up", "completion", "help", "atlas", "serve"}
#: Studies use the house: their functions are in `mmaformal.studies`.
OF_STUDIES = {"amx", "e9s12", "unit-study", "training", "narrow-range"}
ASKING = sorted(COMMANDS.keys() - OF_THE_TERMINAL - OF_STUDIES)

#: Where a function is in a file of another name: the folder, or the first name, says it.
FILES = {
    "diff": "mmaformal.queries.find_difference",
    "prove": "mmaformal.queries.properties",
    "check": "mmaformal.recordings.report",
    "probe": "mmaformal.probes.report",
    "record": "mmaformal.recorder.units",
}

#: Keywords that several functions take, and their types.
SHARED = {
    "timeout": {"float", "float | None"},
    "memory": {"int"},
    "solver": {"Solver"},
    "jobs": {"int | None"},
    "executor": {"Executor | None"},
    "progress": {"Progress | None", "bool | Progress | None"},
    "cache": {"Cache"},
    "seed": {"int"},
    "k": {"int | None", "Sequence[int]"},
    "promote_every": {"int | None"},
    "only": {"Sequence[str] | None", "Iterable[str] | None"},
    "where": {"Constraint | str | Iterable[Constraint | str]"},
    "name": {"str | None"},
    **{f"scale_{side}": {"Matrix | None", "ArrayLike | None"} for side in "ab"},
    **{f"{name}_format": {"str", "str | Format"} for name in ("a", "b", "c", "d", "scale")},
}
#: Keywords of one function each.
_OF_DESIGNS = {
    *("top", "defines", "parameters", "includes", "lists"),
    *("ports", "ties", "cycles", "held"),
}
OWN = {
    "batch_invariant": {"device", "against"},
    "certify": {"properties", "against"},
    "check": {"architecture", "instruction", "replace"},
    "check_certificate": {"also"},
    "diagnose": {"order_timeout"},
    "diagnose_gemm": {"instructions"},
    "errors": {"split_k"},
    "explain": {"device", "against", "every_block", "call", "scale_layout", "scale_format"},
    "find_difference": {"known"},
    "from_rtl": _OF_DESIGNS | {"k"},
    "identify": {"scale_block", "among", "confirm", "solver_timeout"},
    "less_accurate": {"products"},
    "matmul": {
        *("instruction", "split_k", "stream_k"),
        *("tile", "order", "accumulation"),
    },
    "max_difference": {"prove", "proof_timeout", "searches"},
    "probe": {"check"},
    "record": {"rows", "compiler"},
    "replay_model": {"named"},
    "roundoff": {"subnormals", "nearest"},
    "signoff": _OF_DESIGNS | {"alike"},
    "signoff_all": _OF_DESIGNS | {"alike"},
    "sizes": {"frac_bits", "cut", "path"},
    "verilog": {"format"},
}

#: Options that are keywords, and those that only one of a command and its function has.
OPTIONS = {
    "--timeout": "timeout",
    "--memory": "memory",
    "--solver": "solver",
    "--jobs": "jobs",
    "--no-cache": "cache",
    "--cluster": "executor",
    "--a-format": "a_format",
}
NOT_BOTH = {
    ("record", "jobs"),  # of a library (`record_product`)
    *(
        (name, "a_format") for name in ("probe", "diagnose-gemm", "identify")
    ),  # the instruction, or the file, says it
}

FUNCTIONS = [name for name in mmaformal.__all__ if inspect.isfunction(getattr(mmaformal, name))]
VERBS = {
    "Check",
    "Compute",
    "Evaluate",
    "Find",
    "List",
    "Measure",
    "Print",
    "Probe",
    "Prove",
    "Read",
    "Record",
}
VERBS |= {"Compile", "Say", "Show", "Train", "Write"}


def function_of(command: str) -> Callable[..., object]:
    found: Callable[..., object] = getattr(mmaformal, command.replace("-", "_"))
    return found


def keywords_of(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    return {
        name: each
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }


@pytest.mark.parametrize("command", sorted(ASKING))
def test_a_command_its_function_and_its_file_have_one_name(command: str) -> None:
    word = command.replace("-", "_")
    assert word in mmaformal.__all__
    callback = COMMANDS[command].callback
    assert callback is not None
    assert (callback.__name__, callback.__module__) == (word, f"mmaformal.cli.{word}")
    module = function_of(command).__module__
    assert module == FILES[command] if command in FILES else module.rpartition(".")[2] == word


@pytest.mark.parametrize("command", sorted([*OF_THE_TERMINAL, *OF_STUDIES]))
def test_other_commands_have_the_file_of_their_name(command: str) -> None:
    callback = COMMANDS[command].callback
    assert callback is not None
    assert callback.__module__ == f"mmaformal.cli.{command.replace('-', '_')}"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_keywords_are_those_of_one_list(name: str) -> None:
    function = getattr(mmaformal, name)
    for keyword, parameter in keywords_of(function).items():
        if keyword in OWN.get(function.__name__, ()):
            continue
        types = (
            str(parameter.annotation).removesuffix(" | None") if "format" in keyword else parameter.annotation
        )
        ordered = {"Format | str": "str | Format"}.get(str(types), types)
        assert ordered in SHARED[keyword], f"{name}({keyword}: {parameter.annotation})"


@pytest.mark.parametrize("command", sorted(ASKING))
def test_options_and_keywords_are_the_same(command: str) -> None:
    options = {option for parameter in COMMANDS[command].params for option in parameter.opts}
    keywords = keywords_of(function_of(command))
    for option, keyword in OPTIONS.items():
        if (command, keyword) not in NOT_BOTH:
            assert (option in options) == (keyword in keywords), option


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *COMMANDS}))
def test_what_it_does_is_said_by_a_verb(name: str) -> None:
    text = (
        COMMANDS[name].help
        if name in COMMANDS and name not in FUNCTIONS
        else getattr(mmaformal, name).__doc__
    )
    assert (text or "").split()[0] in VERBS


def test_diff_is_find_difference() -> None:
    assert mmaformal.diff is mmaformal.find_difference


def test_all_that_is_said_to_be_there_is() -> None:
    assert len(set(mmaformal.__all__)) == len(mmaformal.__all__)
    for name in mmaformal.__all__:
        assert getattr(mmaformal, name) is not None
        assert name in dir(mmaformal)


# ---- old names -------------------------------------------------------------------------------------------------------


def test_old_keywords_are_taken_with_a_warning() -> None:
    same = hopper["HMMA.16816.F32"]
    with pytest.warns(
        DeprecationWarning, match=r"find_difference\(backends=…\) is find_difference\(solver=…\) now"
    ):
        assert mmaformal.find_difference(same, same, backends="z3").verdict == "equal"  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="timeout"):
        assert max_difference(same, same, seconds=1.0).bound == 0  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="seconds is timeout now"):
        max_difference(same, same, seconds=1.0, timeout=2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        identify(same, seconds=1.0)  # type: ignore[call-arg]
    with (
        pytest.warns(DeprecationWarning, match=r"prove=True, proof_timeout=SECONDS\) now"),
        pytest.raises(LookupError),
    ):
        max_difference("nothing", same, prove=1.0)  # type: ignore[arg-type]
    with (
        pytest.warns(DeprecationWarning, match=r"solver_timeout=…\) now"),
        pytest.raises(TypeError, match="callable"),
    ):
        identify(len, solving=1.0)  # type: ignore[call-arg]
    with (
        pytest.warns(DeprecationWarning, match=r"order_timeout=…\) now"),
        pytest.raises(RecordingError),
    ):
        mmaformal.diagnose("missing.npz", orders=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("function", [mmaformal.signoff, mmaformal.signoff_all, mmaformal.from_rtl])
def test_told_is_progress(function: Callable[..., object]) -> None:
    given = {"k": 1, "a_format": "fp16", "c_format": "fp16"} if function is mmaformal.from_rtl else {}
    model = () if given else ("ampere HMMA.16816.F32",)
    with (
        pytest.warns(DeprecationWarning, match=r"\(told=…\) is .*\(progress=…\) now"),
        pytest.raises(HardwareError, match=r"missing\.v"),
    ):
        function("missing.v", *model, told=print, **given)


def test_an_old_keyword_warns_at_the_line_that_gives_it() -> None:
    same = ampere["HMMA.16816.F32"]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        max_difference(same, same, seconds=1.0)  # type: ignore[call-arg]
    assert [each.filename for each in seen] == [__file__]


def test_old_functions_are_there_with_a_warning() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"mmaformal\.explain_mismatches is mmaformal\.mismatches now"
    ):
        assert mmaformal.explain_mismatches is mmaformal.mismatches  # type: ignore[attr-defined]
    old = importlib.import_module("mmaformal.queries.prove_encodings")
    with pytest.warns(DeprecationWarning, match=r"mmaformal\.queries\.verify now"):
        assert old.Prover is Prover
    with pytest.warns(DeprecationWarning, match="verify"):
        assert old.prove_encodings is mmaformal.verify


def test_old_modules_are_there_with_a_warning() -> None:
    old = importlib.import_module("mmaformal.algorithms")
    for name, place in (("Fda", "encodings.fda"), ("DotAdd", "spec"), ("Rounding", "rounding")):
        with pytest.warns(DeprecationWarning, match=rf"algorithms\.{name} is mmaformal\.{place}\.{name} now"):
            assert getattr(old, name) is getattr(importlib.import_module(f"mmaformal.{place}"), name)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = old.Nothing
    with pytest.warns(DeprecationWarning, match=r"mmaformal\.queries\.errors\.errors now"):
        assert importlib.import_module("mmaformal.many_errors").measured is mmaformal.errors
    with pytest.warns(DeprecationWarning, match=r"listing\.text_table now"):
        assert importlib.import_module("mmaformal.listing").table is listing.text_table


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) & {"signoff_all", "record", "from_rtl", "errors"}))
def test_what_a_function_gives_back_is_there_too(name: str) -> None:
    assert inspect.signature(getattr(mmaformal, name)).return_annotation in mmaformal.__all__


def test_a_progress_of_numbers_is_called_with_them_and_a_warning() -> None:
    told: list[object] = []
    say = lines(told.append, "done, total")
    assert say is not None
    say("1 of 2", 1, 2)
    with pytest.warns(DeprecationWarning, match="with a line of text now"):
        say = lines(lambda done, total: told.append((done, total)), "done, total")
    assert say is not None
    say("2 of 2", 2, 2)
    assert told == ["1 of 2", (2, 2)]


#: Options that were called otherwise.
OLD_OPTIONS = {
    "--chain": "--k",
    "--seconds": "--timeout",
    "--threads": "--jobs",
    "--a": "--a-format",
    "--orders": "--order-timeout",
}


def test_old_options_are_taken_with_a_word_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    renamed = [each for command in COMMANDS.values() for each in command.params if isinstance(each, Renamed)]
    assert {old: each.opts[0] for each in renamed for old in each.old} == OLD_OPTIONS
    words = ["ampere", "hopper", "HMMA.16816.F32", "--seconds", "3"]
    context = COMMANDS["max-difference"].make_context("max-difference", words)
    assert context.params["timeout"] == 3
    assert (
        capsys.readouterr().err
        == "mmaformal: --seconds is --timeout now; the old name goes with the next version\n"
    )
    assert "--seconds" not in COMMANDS["max-difference"].get_help(context)
