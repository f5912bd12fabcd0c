"""Architectures by the names of devices, and instructions by types, in commands and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import run

from mmaformal import (
    ARCHITECTURES,
    Equal,
    Instruction,
    Unknown,
    ada,
    ampere,
    blackwell,
    find_difference,
    fingerprint,
    hopper,
    matmul,
    prove,
    volta,
)
from mmaformal.architectures import Architecture, UnknownArchitectureError, UnknownInstructionError
from mmaformal.architectures.base import takes
from mmaformal.architectures.meant import architecture_meant, instruction_meant
from mmaformal.architectures.models import known_models
from mmaformal.architectures.products import NOT_MODELLED, PRODUCTS, architecture_of
from mmaformal.queries import find_difference as find_difference_module

#: what drivers, compilers and people write, and what it is
WRITTEN = {
    "h100": "hopper",
    "NVIDIA H100 80GB HBM3": "hopper",
    "GH200": "hopper",
    "sm_90a": "hopper",
    "NVIDIA A100-SXM4-80GB": "ampere",
    "Tesla V100-SXM2-16GB": "volta",
    "Tesla T4": "turing",
    "NVIDIA GeForce RTX 3090": "ampere",
    "rtx-4070 ti super": "ada",
    "RTX 6000 Ada Generation": "ada",
    "Quadro RTX 6000": "turing",
    "L4": "ada",
    "sm80": "ampere",
    "gb200": "blackwell",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx_blackwell",
    "rtx5090": "rtx_blackwell",
    "AMD Instinct MI300X OAM": "cdna3",
    "mi250x": "cdna2",
    "gfx908": "cdna1",
    "Intel(R) Xeon(R) Platinum 8480+": "sapphire_rapids",
    "granite-rapids": "sapphire_rapids",
    "Graviton 3": "armv8_6",
    "grace": "armv8_6",
    "POWER10": "power10",
    "armv9_sme": "sme",
    "Apple M3 Pro": "apple_amx",
    "RTX-Blackwell": "rtx_blackwell",
    "4090": "ada",
    "2080ti": "turing",
    "a6000": "ampere",
    "RTX 4000 SFF Ada": "ada",
    "NVIDIA Jetson AGX Orin": "ampere",
    "compute_90a": "hopper",
    "Compute Capability 8.6": "ampere",
    "9.0": "hopper",
    "gfx90a:sramecc+:xnack-": "cdna2",
    "CDNA 3": "cdna3",
    "Emerald_Rapids": "sapphire_rapids",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_device_is_its_architecture(name: str) -> None:
    assert ARCHITECTURES[name].name == WRITTEN[name]
    assert architecture_meant(name) is ARCHITECTURES[WRITTEN[name]]


def test_every_device_has_an_architecture_that_there_is_and_a_source() -> None:
    for each in PRODUCTS:
        assert each.architecture in list(ARCHITECTURES)
        assert each.source
        for name in each.names:
            assert architecture_of(name) == each.architecture
            assert ARCHITECTURES.canonical(name.upper()) == each.architecture
    names = [name.lower() for each in PRODUCTS for name in each.names]
    assert len(names) == len(set(names)), "a device is listed twice"


def test_revisions_of_devices_are_those_of_their_architectures() -> None:
    assert ARCHITECTURES["h100@paper-v1"].name == "hopper@paper-v1"
    assert list(ARCHITECTURES)[:2] == ["volta", "turing"]  # devices are found, and not listed


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_a_device_without_a_model_is_said_to_be_one(name: str) -> None:
    with pytest.raises(UnknownArchitectureError, match="no model of"):
        ARCHITECTURES[name]


def test_a_model_of_a_user_may_be_called_like_a_device() -> None:
    own = Architecture("a10", "of mine", ampere.instructions[:1])
    with known_models(own):
        assert ARCHITECTURES["a10"] is own
    assert ARCHITECTURES["a10"] is ampere


# ---- types


def test_a_type_means_the_instructions_that_take_it() -> None:
    assert {i.a_format.name for i in hopper.find("fp8")} == {"e4m3", "e5m2"}
    assert all(i.d_format.name == "fp32" for i in hopper.find("e4m3+fp32"))
    scaled = ARCHITECTURES["blackwell"].find("nvfp4")
    assert scaled
    assert all((i.spec.scale_format.name, i.spec.scale_block) == ("ue4m3", 16) for i in scaled)
    assert not any(i.spec.scale_format for i in ARCHITECTURES["blackwell"].find("fp4"))
    assert not takes(hopper["HMMA.16816.F32"], "fp8")


def test_a_type_that_one_function_takes_is_that_function() -> None:
    assert volta.meant("fp16+fp16") == volta["HMMA.884.F16.F16"]
    assert hopper.meant("fp64") == hopper["DMMA.884"]  # the others are the same, chained
    with pytest.raises(UnknownInstructionError, match=r"^fp16 means 4 functions of hopper: HMMA.1688.F32, "):
        hopper.meant("fp16")
    with pytest.raises(UnknownInstructionError, match="no instruction of volta takes bf16; a is one of fp16"):
        volta.meant("bf16")


def test_commands_take_devices_and_types(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "diff", "t4", "v100", "fp16+fp16")
    assert (status, err.count("\n")) == (2, 3)  # what was taken for the types, and that K is another
    assert "--k 8 chains both" in err.splitlines()[2]
    status, out, err = run(capsys, "diff", "v100", "Tesla V100-SXM2-16GB", "fp16+fp16")
    assert status == 0
    assert out.startswith("Equal: volta HMMA.884.F16.F16")
    assert err == "mmaformal: fp16+fp16 of volta is HMMA.884.F16.F16\n" * 2


def test_a_type_of_many_functions_is_the_plainest_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def worked_out(x: Instruction, y: Instruction, **_: object) -> Unknown:
        asked.append((x.label, y.label))
        return Unknown("q", "not asked", (), 0.0)

    monkeypatch.setattr(find_difference_module, "find_difference", worked_out)
    err = run(capsys, "diff", "h100", "b200", "fp8")[2]
    assert err.splitlines() == [
        "mmaformal: fp8 of hopper is QGMMA.64x8x32.F32.E4M3.E4M3 (`mmaformal list hopper fp8` has 15 more)",
        "mmaformal: fp8 of blackwell is UTCQMMA.F32.E4M3.E4M3 (`mmaformal list blackwell fp8` has 15 more)",
    ]
    run(capsys, "diff", "a100", "h100", "fp16")
    run(capsys, "diff", "MI300X", "mi300a", "fp8")
    assert asked == [
        ("hopper QGMMA.64x8x32.F32.E4M3.E4M3", "blackwell UTCQMMA.F32.E4M3.E4M3"),
        ("ampere HMMA.16816.F32", "hopper HMMA.16816.F32"),
        ("cdna3 v_mfma_f32_16x16x32_fp8_fp8",) * 2,
    ]
    assert run(capsys, "diff", "v100", "h100", "bf16")[0] == 2
    with pytest.raises(UnknownInstructionError, match="bf16"):
        volta.plainest("bf16")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "list MI350X",
            "no model of MI350X: of CDNA4 (gfx950) only layouts are published (docs/specified.md) "
            "(`mmaformal list --devices` has what is)",
        ),
        ("list 4091", "no architecture '4091'; did you mean RTX 4090?"),
        ("list 2080ti-x", "no architecture '2080ti-x'; did you mean RTX 2080?"),
        ("list EPYC-9654", "no model of EPYC-9654: "),
        ("list HMMB", "no architecture and no instruction is called 'HMMB' or starts so; "),
        (
            "diff a100 HMMA.16816.F32 h100",
            "HMMA.16816.F32 is no ARCH, but an INSTRUCTION: `mmaformal diff ARCH ARCH ",
        ),
        ("show fp8", "fp8 is no ARCH, but an INSTRUCTION: `mmaformal show ARCH "),
        (
            "diff a100 h100",
            "missing argument 'INSTRUCTION': `mmaformal diff ARCH ARCH INSTRUCTION [INSTRUCTION]`",
        ),
        (
            "less-accurate a b c",
            "got unexpected extra argument (c): `mmaformal less-accurate EMULATION [EMULATION]`",
        ),
        ("--model x.py:y list", "--model stands after the COMMAND: `mmaformal COMMAND … --model …`"),
        ("list --model nothing.py:x x", "--model: nothing.py: No such file or directory"),
        ("signoff unit.sv --against h100", "option '--against' requires 2 arguments, ARCH INSTRUCTION: "),
        ("prove exactness", "ARCH INSTRUCTION is missing: `mmaformal prove exactness ARCH INSTRUCTION`"),
        ("prove exactness h100", "INSTRUCTION is missing: `mmaformal prove exactness hopper INSTRUCTION`"),
        ("verify --all hopper", "verify what? ARCH, ARCH INSTRUCTION, or --all: one of them"),
        ("diagnose-gemm D.npy", "D.npy: one matrix: a folder with A.npy, B.npy and D.npy is read"),
        ("run h100 HMMA.16816.F32 --a 1\t2 --b 1 --pad", "--a: values are separated by commas, not '1\\t2'"),
        ("", "which COMMAND? `mmaformal --help` lists them"),
        ("sizes hopper", "'hopper' names no instruction: write"),
        (
            "bound hopper HMMA.16816.F32 --k 1e9",
            "--k is a number of products of 1 or more, not '1e9'; at most 16,777,216",
        ),
        (
            "diff a100 h100 HMMA.16816.F32 --where c=5",
            "'c=5': a code is hexadecimal, as 0x5; 5 may be a number",
        ),
        (
            "diagnose-gemm examples/bfdot_qemu.npz",
            "examples/bfdot_qemu.npz: no array 'A': a product has A, B, D and meta; ",
        ),
        ("xyzzy", "no command 'xyzzy'; `mmaformal --help` lists the commands"),
    ],
)
def test_a_mistake_is_told_in_a_line_of_a_screen(
    words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    status, out, err = run(capsys, *words.split(" ") if words else ())
    assert (status, out) == (2, "")
    assert err.startswith(f"mmaformal: {said}")
    assert len(err) <= 160


def test_list_takes_devices_and_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list", "h100") == run(capsys, "list", "hopper")
    told = json.loads(run(capsys, "list", "h100", "--type", "e4m3", "--json")[1])
    assert {(i["a_format"], i["b_format"]) for i in told} == {("e4m3", "e4m3")}
    told = json.loads(run(capsys, "list", "--type", "mxfp4", "--json")[1])
    assert {i["architecture"] for i in told} == {"blackwell", "rtx_blackwell"}
    status, out, err = run(capsys, "list", "v100", "--type", "bf16")
    assert (status, out) == (2, "")
    assert "bf16" in err
    status, out, _ = run(capsys, "list", "--devices")
    assert status == 0
    assert all(name in " ".join(out.split()) for each in PRODUCTS for name in each.names)


# ---- Python


def test_functions_take_names() -> None:
    assert instruction_meant("RTX 4090 HMMA.16816.F32") is ada["HMMA.16816.F32"]
    assert instruction_meant("emulation ootomo(hopper HMMA.16816.F32)").k == 16
    assert isinstance(find_difference("a100", "L4", "HMMA.16816.F32"), Equal)
    assert isinstance(find_difference("a100 HMMA.16816.F32", "ada HMMA.16816.F32"), Equal)
    a, b = np.ones((2, 16), np.float16), np.ones((16, 3), np.float16)
    same = matmul(a, b, instruction=hopper["HMMA.16816.F32"])
    assert np.array_equal(matmul(a, b, instruction="h100 HMMA.16816.F32"), same)


def test_python_ints_that_are_meant_for_numbers_are_refused() -> None:
    i = hopper["HMMA.16816.F32"]
    ones = [[1] * 16] * 16
    with pytest.raises(ValueError, match=r"for the number write 1\.0"):
        matmul(ones, ones, instruction=i)
    assert matmul([[1.0] * 16], [[1.0]] * 16, instruction=i).item() == 16
    assert matmul(np.array(ones, np.uint16), np.array(ones, np.uint16), instruction=i).dtype == np.uint32


def test_a_property_and_an_instruction_in_the_wrong_order_are_told() -> None:
    with pytest.raises(TypeError, match="the property comes first"):
        prove(hopper["HMMA.16816.F32"], "order-independence")  # type: ignore[arg-type]


def test_what_is_shown_at_a_prompt_is_what_was_found() -> None:
    found = fingerprint([hopper["HMMA.16816.F32"], blackwell["HMMA.16816.F32"]])
    assert repr(found) == "<Fingerprint: 2 instructions, one function: no input tells them apart>"


@pytest.mark.parametrize("name", ["hopper", "", "kepler HMMA.16816.F32", "hopper HMMA.1"])
def test_names_of_nothing_are_refused(name: str) -> None:
    with pytest.raises(KeyError):
        prove("order-independence", name)
    with pytest.raises(KeyError):
        matmul(np.ones((1, 1), np.float16), np.ones((1, 1), np.float16), instruction=name)


def test_an_instruction_that_is_not_settled_says_why() -> None:
    with pytest.raises(
        UnknownInstructionError, match=r"tmmultf32ps'\. Not settled: withdrawn: Intel removed AMX-TF32"
    ):
        instruction_meant("diamond_rapids tmmultf32ps")
