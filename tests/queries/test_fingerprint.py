"""Inputs that tell models apart do; what they do not distinguish is proved the same; the program says which it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from support.late import late
from support.recorded import SHARED, recorded, save

from mmaformal import ARCHITECTURES, cli, fingerprint
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import results
from mmaformal.queries import classes
from mmaformal.queries import fingerprint as module
from mmaformal.queries.find_difference import IncomparableError
from mmaformal.queries.fingerprint import Fingerprint, of_types
from mmaformal.recorder.program import RecorderError
from mmaformal.solver.answers import Unknown

CHIPS = "sapphire_rapids", "armv8_6", "cdna2"
CPU = Path("/proc/cpuinfo")
HAS_BF16 = CPU.exists() and "avx512_bf16" in CPU.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found() -> Fingerprint:
    """The fingerprint of processors and one GPU."""
    with pytest.MonkeyPatch.context() as patch:
        without_solvers(patch)
        return fingerprint([i for i in of_types("bf16", "fp32") if i.architecture in CHIPS])


def without_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "find_difference", lambda *_, **__: Unknown("one?", "not asked", (), 0.0))


def test_the_inputs_tell_all_apart(found: Fingerprint) -> None:
    firsts = [each.model for each in found.classes]
    given = np.stack([results(spec, Rows.of(found.cases).codes) for spec in firsts])
    assert np.array_equal(given, np.array(found.gives, np.uint64))
    assert len(set(found.gives)) == len(firsts) > 3
    assert found.at_least == len(found.cases) == 1
    assert sorted(x for labels in found.labels for x in labels) == sorted(i.label for i in found.instructions)


def test_its_results_are_numbers(found: Fingerprint) -> None:
    assert all(found.instructions[0].d_format.is_finite(d) for gives in found.gives for d in gives)


def test_it_is_told(found: Fingerprint) -> None:
    text = str(found)
    assert text.splitlines()[0].startswith(f"1 input tells {len(found.classes)} functions of ")
    assert "(fewer do not)" in text
    assert all(labels[0] in text for labels in found.labels)
    rows = found.rows()
    assert [row["instruction"] for row in rows] == [label for labels in found.labels for label in labels]
    assert {(row["function"], int(str(row["input 1"]), 16)) for row in rows} == {
        (number, gives[0]) for number, gives in enumerate(found.gives, 1)
    }
    told = json.loads(json.dumps(found.to_json()))
    assert len(told["classes"]) == len(found.classes)
    assert [int(x, 16) for x in told["classes"][0]["gives"]] == list(found.gives[0])


def test_the_same_function_needs_no_input() -> None:
    one = ARCHITECTURES["hopper"]["HMMA.16816.F32"]
    found = fingerprint([one, ARCHITECTURES["blackwell"]["HMMA.16816.F32"]])
    assert (len(found.classes), found.cases, found.at_least) == (1, (), 0)
    with pytest.raises(RecorderError, match="no input tells these apart"):
        found.program(one)


def test_equal_ones_of_other_parameters_are_proved_so() -> None:
    """Two are equal as far as what is known of one's NaNs goes."""
    one = ARCHITECTURES["sapphire_rapids"]["VFMADD231PH"]
    found = fingerprint([one, one.replace(nan="ANY"), one.replace(rho="RNA-FP16")], timeout=60)
    assert [len(each.members) for each in found.classes] == [2, 1]
    assert len(found.classes[0].same) == len(found.classes[0].proofs) == 1


def test_rows_are_named(found: Fingerprint, tmp_path: Path) -> None:
    i = ARCHITECTURES["armv8_6"]["BFMMLA"]
    path = save(tmp_path / "rows.npz", recorded(i, 400))
    assert [labels[0] for labels in found.named(path)] == ["armv8_6 BFDOT[K=32]"]
    other = save(tmp_path / "other.npz", recorded(ARCHITECTURES["hopper"]["HMMA.16816.F32"], 9))
    with pytest.raises(IncomparableError):
        found.named(other)


def test_wrong_sets_are_told() -> None:
    with pytest.raises(ValueError, match="there is no instruction"):
        fingerprint([])
    with pytest.raises(IncomparableError):
        fingerprint([ARCHITECTURES["hopper"][x] for x in ("HMMA.16816.F32", "HMMA.16816.F32.BF16")])
    with pytest.raises(ValueError, match="no instruction takes"):
        of_types("fp64", "fp16")


@pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/recordings beside this checkout")
def test_recorded_units_are_named(found: Fingerprint) -> None:
    for name, label in (
        ("emr_tdpbf16ps", "TDPBF16PS"),
        ("qemu_bfdot", "BFDOT"),
        ("emr_vdpbf16ps", "VDPBF16PS"),
    ):
        (labels,) = found.named(SHARED / "processors" / f"{name}.npz")
        assert label in labels[0]


# ---- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_the_program_of_a_processor_compiles_and_names_it(found: Fingerprint, tmp_path: Path) -> None:
    program = found.program(ARCHITECTURES["sapphire_rapids"]["VDPBF16PS"])
    source, executable = tmp_path / "name.c", tmp_path / "name"
    source.write_text(program.source, encoding="utf-8")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    built = subprocess.run(
        ["gcc", *flags, "-o", executable, source], capture_output=True, text=True, check=False
    )
    assert not built.returncode, built.stderr
    if not HAS_BF16:
        pytest.skip("it compiles; this processor has no avx512_bf16 to run it on")
    ran = subprocess.run([executable], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "sapphire_rapids VDPBF16PS[K=32]\n")
    wrong = program.source
    for gives in found.gives:
        wrong = wrong.replace(f"{{{gives[0]:#x}u}}", "{0x123u}")
    source.write_text(wrong, encoding="utf-8")
    subprocess.run(["gcc", "-o", executable, source], check=True)
    ran = subprocess.run([executable], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stdout.startswith("none of the models: 0x")


def test_programs_of_gpus_have_the_inputs(found: Fingerprint) -> None:
    for arch, name, suffix in (
        ("hopper", "HMMA.16816.F32.BF16", ".cu"),
        ("cdna3", "v_mfma_f32_32x32x8_bf16", ".hip"),
    ):
        program = found.program(ARCHITECTURES[arch][name])
        assert program.suffix == suffix
        issues = 32 // ARCHITECTURES[arch][name].k
        assert f"pieces[1][{issues}] = {{" in program.source
        assert all(labels[0] in program.source for labels in found.labels)
        assert program.source.count("int main(") == 1
    with pytest.raises(RecorderError, match="which does not divide 32"):
        found.program(ARCHITECTURES["blackwell"]["UTCQMMA.F32.E4M3.E4M3"].replace(k=64))


# ---- the time limit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [1.0, 3.0])
def test_no_answer_is_later_than_its_limit(timeout: float) -> None:
    start = time.monotonic()
    units = of_types("bf16", "fp32")
    found = fingerprint(units, timeout=timeout)
    assert time.monotonic() - start < timeout + 10
    if found.distinguished:  # as far as this machine came
        assert len(set(found.gives)) == len(found.classes)
        assert found.complete or "the time was up before fewer and smaller inputs" in str(found)
    else:
        assert found.summary.startswith(
            f"not settled: the time was up before all {len(units)} instructions were compared"
        )


def test_inputs_that_are_not_known_to_tell_all_apart_name_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [i for i in of_types("bf16", "fp32") if i.architecture in CHIPS]
    late(classes, "generate", monkeypatch)
    found = fingerprint(few)
    assert (found.distinguished, found.complete) == (False, False)
    assert "not known to tell all of them apart" in str(found)
    assert " is " not in str(found)
    path = save(tmp_path / "rows.npz", recorded(few[0], 9))
    for use in (lambda: found.named(path), lambda: found.program(few[0])):
        with pytest.raises(ValueError, match="not known to tell all instructions apart"):
            use()
    words = ["fingerprint", "bf16", "fp32", "--arch", "cdna2"]
    assert cli.main([*words, "--name", str(path)]) == 3
    assert "not known to tell all of them apart" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["distinguished"] is False


def test_the_inputs_found_are_told_where_there_was_no_time_to_make_them_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_solvers(monkeypatch)
    late(module, "_smaller", monkeypatch)
    one = ARCHITECTURES["armv8_6"]["BFMMLA"]
    found = fingerprint([one, ARCHITECTURES["sapphire_rapids"]["VDPBF16PS"]], timeout=60)
    assert (found.distinguished, found.complete) == (True, False)
    assert len(set(found.gives)) == len(found.classes) == 2
    assert "the time was up before fewer and smaller inputs were looked for" in str(found)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_names_a_file_and_writes_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "rows.npz", recorded(ARCHITECTURES["armv8_6"]["BFDOT"], 200))
    words = [
        "fingerprint",
        "bf16",
        "fp32",
        *(x for chip in CHIPS[:2] for x in ("--arch", chip)),
        "--timeout",
        "60",
    ]
    out = tmp_path / "name.c"
    more = ["--name", str(path), "--program", str(out), "--on", "sapphire_rapids", "VDPBF16PS"]
    assert cli.main([*words, *more]) == 0
    said = capsys.readouterr().out
    assert "rows.npz: armv8_6 BFDOT" in said
    assert "int main(void)" in out.read_text(encoding="utf-8")
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["terms"] == 32


def test_no_input_tells_one_function_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fingerprint", "bf16", "fp32", "--arch", "armv8_6"]) == 0
    said, *labels = capsys.readouterr().out.splitlines()
    assert said == f"{len(labels)} instructions, one function: no input tells them apart"
    assert any(label.startswith("  armv8_6 BFDOT") for label in labels)


@pytest.mark.parametrize(
    "words",
    [
        ["fp17", "fp32"],
        ["fp64", "fp16"],
        ["bf16", "fp32", "--program", "x.c"],
        ["bf16", "fp32", "--name", "no.npz"],
    ],
)
def test_wrong_use_is_told_in_a_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fingerprint", *words, "--arch", "armv8_6", "--timeout", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
