"""Programs in Python and NumPy as designs: followed, proved, refuted by the smallest input, refused with their line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import cdna2, cdna3, cli, datapath, volta
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.run import compiled_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.blackbox import from_rtl
from mmaformal.hardware.matching import values_of
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.tracing.reading import TracedProgram, read_traced
from mmaformal.hardware.tracing.traced import OPERATIONS as OPERATIONS_FOLLOWED
from mmaformal.hardware.undefined import drawn
from mmaformal.queries.signoff import signoff
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session

FOLDER = Path(__file__).with_name("programs_py")
FOUR = datapath["fda(k=4,frac_bits=13,a=e2m1,rho=RNE-FP16)"]
#: The types of c and d of programs of one operation: codes or numbers of 16 and of 32 bits.
HALF = datapath["fda(k=2,frac_bits=13,a=fp16,rho=RNE-FP16)"]


def _changed(tmp_path: Path, source: str, *pairs: tuple[str, str]) -> str:
    """A program of the folder with some of its text changed."""
    text = (FOLDER / source).read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / source
    path.write_text(text, encoding="utf-8")
    return f"{path}:dot"


def _wrong(program: str, count: int = 300) -> NDArray[np.bool_]:
    """The rows on which a program's terms are not what it gives, NaNs and what is left open aside."""
    read = read_traced(program, HALF.spec, {})
    rows = generate(HALF.spec, count, seed=3, distributions=(*DISTRIBUTIONS, "edge"))
    codes, d, theirs = values_of(symbolic_inputs(HALF.spec), rows), read.module.outputs["d"], read.run(rows)
    mine, other = (
        np.broadcast_to(evaluate(d, {**codes, **drawn(read.module, count, seed)}), count).astype(np.uint64)
        for seed in (0, 1)
    )
    assert len(set(theirs.tolist())) > 5
    assert np.mean(mine == other) > 0.5
    return np.asarray((mine == other) & (mine != theirs))


#: Operations of float16 numbers x, y and z, or of their bits i, j and k as int64, one by one; each gives one number.
OPERATIONS = {
    "add": "x + y",
    "subtract": "x - y",
    "multiply": "x * y",
    "wide": "(x.astype(np.float64) * y).astype(np.float32).astype(np.float16)",
    "float32": "(x.astype(np.float32) + y.astype(np.float32)).astype(np.float16)",
    "negative": "-x",
    "abs": "np.abs(x)",
    "trunc": "np.trunc(x)",
    "floor": "np.floor(x)",
    "ceil": "np.ceil(x)",
    "rint": "np.rint(x)",
    "frexp": "np.frexp(x)[0]",
    "frexp exponent": "bits(np.frexp(np.where(np.isfinite(x), x, np.float16(1)))[1])",
    "ldexp": "np.ldexp(x, (j & 31) - 16)",
    "where": "np.where(x < y, x, z)",
    "maximum": "np.maximum(x, y)",
    "minimum": "np.minimum(x, y)",
    "less": "np.where(x <= y, x, y)",
    "equal": "np.where((x == y) | (x != z), x, y)",
    "flags": "np.where(np.isnan(x) | np.isinf(y), z, np.where(np.signbit(z), x, y))",
    "view": "bits(x.view(np.int16) >> 3)",
    "shifts": "bits((i << (j & 7)) + (j >> (k & 15)))",
    "bitwise": "bits((i & j) | (k ^ ~j))",
    "integers": "bits(i * j - 7 * k)",
    "modulo": "bits(i // 16 + j % 32)",
    "int8": "bits(i.astype(np.int8).astype(np.int64) + j.astype(np.uint8))",
    "uint16": "(i.astype(np.uint16) * np.uint16(3) + np.uint16(65535)).view(np.float16)",
    "largest": "np.stack([x, y, z]).max()",
    "integer sum": "bits(np.array([i, j, k]).sum())",
    "exact sum": "np.stack([x, y]).astype(np.float64).sum().astype(np.float16)",
    "compare bits": "np.where(i < j, x, np.where(i == k, y, z))",
    "condition": "x if i > j else (y if j > 9 and not k < 3 else z)",
    "filled": "filled(x, y, z)",
    "loop": "bits(loop(i, j))",
}
PRELUDE = """
import numpy as np

def bits(i):
    return np.int64(i).astype(np.uint16).view(np.float16)

def filled(x, y, z):
    every = np.zeros(3, np.float16)
    every[0], every[2] = x, z
    if x < y:
        every[1] = y
    return every[1] + every[0]

def loop(i, j):
    seen = [0]
    for step in range(4):
        if i >> step & 1:
            seen[0] += j << step
        elif j > 5:
            seen[0] ^= step
    return seen[0]

def one(a, b, c):
    x, y, z = a[0], b[0], c
    i, j, k = (n.view(np.uint16).astype(np.int64) for n in (x, y, z))
    return """


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_what_numpy_does(name: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(PRELUDE + OPERATIONS[name] + "\n", encoding="utf-8")
    assert not _wrong(f"{path}:one").any()


#: Operations of torch's tensors; `half` makes float16 of integers.
TORCH_OPERATIONS = {
    "add": "x + y",
    "subtract": "torch.sub(x, y)",
    "multiply": "x * y",
    "wide": "(x.double() * y.double()).float().half()",
    "float32": "(x.float() + y).to(torch.float16)",
    "bfloat16": "(x.to(torch.bfloat16).float() + y.to(torch.bfloat16).float()).half()",
    "negative": "-x",
    "abs": "x.abs()",
    "trunc": "torch.trunc(x)",
    "floor": "torch.floor(x)",
    "ceil": "x.ceil()",
    "round": "torch.round(x)",
    "frexp": "torch.frexp(x.float())[0].half()",
    "frexp exponent": "half(torch.frexp(torch.where(torch.isfinite(x), x, 1.0).float())[1])",
    "ldexp": "torch.ldexp(x.float(), (j & 31) - 16).half()",
    "exp2": "torch.exp2(((j & 31) - 16).double()).half()",
    "where": "torch.where(x < y, x, z)",
    "maximum": "torch.maximum(x, y)",
    "minimum": "torch.minimum(x, y)",
    "largest": "torch.stack([x, y, z]).max(dim=-1).values",
    "less": "torch.where(x <= y, x, y)",
    "equal": "torch.where((x == y) | (x != z), x, y)",
    "flags": "torch.where(x.isnan() | y.isinf(), z, torch.where(torch.signbit(z), x, y))",
    "copysign": "torch.copysign(x, y)",
    "view": "half(x.view(torch.int16) >> 3)",
    "shifts": "half((i << (j & 7)) + (j >> (k & 15)))",
    "bitwise": "half((i & j) | (k ^ ~j))",
    "integers": "half(i * j - 7 * k)",
    "mask": "masked(x, y, z)",
    "cat": "torch.cat([x.unsqueeze(-1), y.reshape(1)]).double().sum(dim=-1).half()",
    "expand": "x.expand(2)[1] + y",
    "all": "torch.where((torch.stack([i, j]) > 0).all(), x, y)",
    "any": "x if (torch.stack([i, j]) > 5).any() else y",
    "full": "torch.full_like(x, 2.0) * x + torch.zeros_like(y) + torch.ones_like(z)",
}
TORCH_PRELUDE = """
import torch

def half(i):
    return i.to(torch.int16).view(torch.float16)

def masked(x, y, z):
    every = torch.stack([x, y, z])
    every[every < x] = 0
    every[every == y] *= 2
    return every[0] + every[2]

def one(a, b, c):
    x, y, z = a[0], b[0], c
    i, j, k = (n.view(torch.int16).to(torch.int64) for n in (x, y, z))
    return """


@pytest.mark.parametrize("name", TORCH_OPERATIONS)
def test_an_operation_is_what_torch_does(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "one.py"
    path.write_text(TORCH_PRELUDE + TORCH_OPERATIONS[name] + "\n", encoding="utf-8")
    assert not _wrong(f"{path}:one").any()


def test_a_wrong_operation_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.py"
    path.write_text(PRELUDE + "np.maximum(x, y)\n", encoding="utf-8")
    monkeypatch.setitem(OPERATIONS_FOLLOWED, "maximum", OPERATIONS_FOLLOWED["minimum"])
    assert _wrong(f"{path}:one").any()
    with pytest.raises(HardwareError, match=r"one of one.py was read wrongly: for .* please report it"):
        signoff(f"{path}:one", HALF, timeout=30)


BUGS = {
    "zero's exponent": (("ex + ey if product else LEAST", "ex + ey"),),
    "ties": (("rest == half and kept & 1", "rest == half"),),
    "shift of negative numbers": (
        ("kept = m >> largest - e", "kept = (-m if s else m) >> largest - e"),
        ("-kept if s else kept", "kept"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_usual_bug_is_refuted_by_the_smallest_input(bug: str, tmp_path: Path) -> None:
    answer = signoff(_changed(tmp_path, "small.py", *BUGS[bug]), FOUR, timeout=120)
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    assert "proved minimal" in str(answer)
    assert any("as it is run gives" in note for note in answer.witness.notes)


REFUSALS = {
    "1 / c": "one.py:2: a division by what is no power of two",
    "[x for x in range(c)]": "one.py:2: an index, a count or a range that depends on the inputs",
    "sum(a) + c.flux": "one.py:2: .flux is not followed",
    "a": "one returns 2 values",
    "0 - c": "which are no codes",
}


@pytest.mark.parametrize("expression", REFUSALS)
def test_what_is_not_followed_is_refused_with_its_line(expression: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(f"def one(a, b, c):\n    return {expression}\n", encoding="utf-8")
    with pytest.raises(HardwareError) as error:
        read_traced(f"{path}:one", HALF.spec, {})
    assert REFUSALS[expression] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_program_that_catches_a_refusal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    text = "def one(a, b, c):\n    try:\n        return 7 // c\n    except Exception:\n        return 0\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HardwareError, match=r"one.py:3: a division"):
        read_traced(f"{path}:one", HALF.spec, {})


def test_a_program_is_read_as_a_unit() -> None:
    unit = from_rtl(f"{FOLDER / 'small.py'}:dot", k=4, a_format="e2m1", c_format="fp16")
    rows = generate(FOUR.spec, 500, seed=4, distributions=(*DISTRIBUTIONS, "edge"))
    codes = values_of(symbolic_inputs(FOUR.spec), rows)
    found = unit.design.module.outputs["d"]
    assert (evaluate(found, codes).astype(np.uint64) == compiled_results(FOUR.spec, rows)).all()
    assert unit.name == "dot of small.py"


#: Programs of c whose values have other ranges, or types, on the two sides of a condition.
SIDES = {
    "exponent": """
def one(a, b, c):
    fraction, exponent = np.frexp(np.float64(c))
    if exponent < -3:
        size = np.exp2(exponent - 1)
    else:
        size = np.exp2(exponent - 1)
    return np.float16(2 * fraction * size * 0.75)
""",
    "type": """
def one(a, b, c):
    x = np.reshape(np.float32(c), (1,))
    if c < 1:
        x = x.astype(np.float64)
    x[x > 3] = 5
    return np.float16(x[0])
""",
    "index": """
def one(a, b, c):
    x = np.reshape(np.float32(c), (1,))
    y = np.float32(c) * np.float32(2) if c < 1 else np.float64(c)
    x[0] = y
    return np.float16(x[0])
""",
}


def _assert_read_as_run(read: TracedProgram, count: int) -> None:
    """Assert that a program's terms have the values that it gives, where these are numbers; there are several."""
    rows = generate(HALF.spec, count, seed=3, distributions=(*DISTRIBUTIONS, "edge"))
    codes = values_of(symbolic_inputs(HALF.spec), rows)
    d = evaluate(read.module.outputs["d"], {**codes, **drawn(read.module, count, 1)})
    mine, theirs = np.broadcast_to(d, count).astype(np.uint64), read.run(rows)
    numbers = (theirs & 0x7C00) != 0x7C00
    assert len(set(theirs[numbers].tolist())) > 1
    assert (mine == theirs)[numbers].all()


#: Programs of c whose values go below the least number, or are zeros with a sign.
SMALL = {
    "mark": """
    fraction, exponent = np.frexp(np.float64(c))
    exponent = np.where(fraction == 0, -2000, exponent)
    return np.float16(np.floor(fraction * np.exp2((exponent - 3).astype(np.float64))))
""",
    "no mark": """
    fraction, exponent = np.frexp(np.float64(c))
    exponent = np.where(fraction < 0.75, -1090, exponent)
    return np.float16(np.floor(fraction * np.exp2((exponent - 3).astype(np.float64))))
""",
    "just below": """
    fraction, exponent = np.frexp(np.float64(c))
    exponent = np.where(fraction < 0, -1074, exponent)
    return np.float16(np.floor(fraction * np.exp2((exponent - 1).astype(np.float64))))
""",
    "power": """
    x = np.float64(c) * 2.0**40
    exponent = np.where(c < 0, -1090, -1072)
    return np.float16(x * np.exp2(exponent.astype(np.float64)) * 2.0**600 * 2.0**430)
""",
    "product": """
    x = np.float64(c)
    exponent = np.where(c < 0, -1070, -1069)
    return np.float16(x * np.exp2(exponent.astype(np.float64)) * 2.0**600 * 2.0**470)
""",
    "power far below": """
    size = np.exp2((np.frexp(np.float64(c))[1] * 60 + 6).astype(np.float64))
    return np.float16(size * 2.0**600 * 2.0**474)
""",
    "product far below": """
    size = np.exp2(np.minimum(np.frexp(np.float64(c))[1] * 60, 0) - 3.0)
    return np.float16(np.floor(size * np.float64(c)) + 0.0)
""",
    "power in two ways": """
    exponent = np.minimum(np.frexp(np.float64(c))[1] * 100, 0)
    if exponent < -1074:
        size = np.exp2(exponent.astype(np.float64))
    else:
        size = np.exp2(exponent.astype(np.float64))
    return np.float16(size * 2.0**100 * c)
""",
    "product in two ways": """
    exponent = np.minimum(np.frexp(np.float64(c))[1] * 60, 0).astype(np.float64)
    if c < 1:
        size = np.exp2(exponent - 900) * np.float64(c)
    else:
        size = np.exp2(exponent - 900) * np.float64(c)
    return np.float16(size * 2.0**900)
""",
    "floor": "    return np.float16(np.floor(np.float64(c) * 0.25) + np.floor(np.float64(c) * 0.125))",
    "trunc": "    return np.float16(np.trunc(np.float64(c) * 0.25) + np.trunc(np.float64(c) * 0.125))",
    "plus zero": "    return np.float16(np.trunc(np.float64(c) * 0.25) + 0.0 + np.trunc(np.float64(c) * 0.5))",
    "minus zero": "    return np.float16(np.trunc(np.float64(c) * 0.25) - 0.0 + np.trunc(np.float64(c) * 0.5))",
    "minus": "    return np.float16(-(np.trunc(np.float64(c) * 0.25) + 0.0) - np.trunc(np.float64(c) * 0.5))",
    "digits": """
    x = np.floor(np.float32(c))
    return np.float16(x * np.float32(40961) - x * np.float32(40960))
""",
    "scaled": """
    fraction, exponent = np.frexp(np.float64(c) - 1.0)
    size = fraction * np.where(exponent < -3, 0.25, 0.5)
    return np.float16(np.floor(size * 1024) + 0.0)
""",
    "two ways": """
    x = np.reshape(np.float32(c), (1,))
    if c < 1:
        x = x.astype(np.float64)
    y = np.floor(x * 4.0) + np.float64(2.0)
    return np.float16(y[0] * 0.25)
""",
    "other ways": """
    x = np.floor(np.float64(c) * 4.0)
    return np.float16(np.where(x < 8, x + 2.0, x + 3.0) * 0.25)
""",
    "blank": """
    x = np.floor(np.float64(c) * 8.0)
    return np.float16((np.where(x < 16, 0.0, x) + np.floor(np.float64(c))) * 0.125)
""",
}


@pytest.mark.parametrize("name", SMALL)
def test_zeros_and_numbers_below_the_least_are_followed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(f"import numpy as np\n\n\ndef one(a, b, c):\n{SMALL[name]}", encoding="utf-8")
    with session(None, 4096, False) as pool:
        read = read_traced(f"{path}:one", HALF.spec, {}, Asker(pool, 60))
    _assert_read_as_run(read, 2000)


@pytest.mark.parametrize("name", SIDES)
def test_both_sides_of_a_condition_are_followed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("import numpy as np\n" + SIDES[name], encoding="utf-8")
    _assert_read_as_run(read_traced(f"{path}:one", HALF.spec, {}), 300)


@pytest.mark.slow
def test_an_emulator_in_integers_is_proved() -> None:
    answer = signoff(f"{FOLDER / 'small.py'}:dot", FOUR, timeout=300)
    assert isinstance(answer, Holds)


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = _changed(tmp_path, "small.py", *BUGS["ties"])
    model = ["--against", "datapath", "fda(k=4,frac_bits=13,a=e2m1,rho=RNE-FP16)"]
    assert cli.main(["signoff", program, *model, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "fails"
    assert cli.main(["signoff", program + "s", *model]) == 2
    assert "there is no function dots in small.py" in capsys.readouterr().err
    assert cli.main(["signoff", program, *model, "--tie", "x=1"]) == 2
    assert "--port alone" in capsys.readouterr().err


@pytest.mark.slow
def test_volta_s_dot_product_in_integers_is_proved_and_refuted(tmp_path: Path) -> None:
    model = volta["HMMA.884.F32.F32"]
    assert isinstance(signoff(f"{FOLDER / 'integers.py'}:dot", model, timeout=300), Holds)
    cut = ("return sign | min(", "return sign | min(1 + ")
    assert isinstance(signoff(_changed(tmp_path, "integers.py", cut), model, timeout=120), Fails)


@pytest.mark.slow
def test_a_program_in_numpy_is_proved() -> None:
    model = datapath["fda(k=1,frac_bits=30,a=e2m1,rho=RNE-FP16)"]
    answer = signoff(f"{FOLDER / 'doubled.py'}:dot", model, where="c=0x0", alike=["nan"], timeout=300)
    assert isinstance(answer, Holds)
    assert any("as it is run gives" in note for note in answer.notes)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True])
def test_two_steps_are_proved_one_after_the_other(wrong: bool, tmp_path: Path) -> None:
    model = datapath["fda(k=1,chain=2,frac_bits=30,a=e2m1,rho=RNE-FP16)"]
    cuts = [("dot(a[:1], b[:1], c))", "dot(a[:1], b[1:], c))")] if wrong else []
    program = _changed(tmp_path, "doubled.py", *cuts).replace(":dot", ":steps")
    answer = signoff(program, model, where="c=0x0", alike=["nan"], timeout=300)
    assert isinstance(answer, Fails if wrong else Holds)


@pytest.mark.slow
def test_additions_of_float32_are_matched_as_wholes(tmp_path: Path) -> None:
    model = cdna2["v_mfma_f32_4x4x2bf16"]
    answer = signoff(f"{FOLDER / 'flushed.py'}:dot", model, alike=["nan"], timeout=300)
    assert isinstance(answer, Holds)
    assert any("left open: payload of a NaN" in note for note in answer.notes)
    also_least = ("np.abs(x) < _LEAST", "np.abs(x) <= _LEAST")
    wrong = signoff(_changed(tmp_path, "flushed.py", also_least), model, alike=["nan"], timeout=300)
    assert isinstance(wrong, Fails)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        None,
        ("MARK = -999", "MARK = -20"),  # above some products
        ("np.where(s == 0, MARK, e)", "np.where(s_a == 0, MARK, e)"),
        ("total * power(largest - top + 32)) * 2.0**-32", "total * power(largest - top + 31)) * 2.0**-31"),
    ],
)
def test_marks_of_zeros_are_followed(change: tuple[str, str] | None, tmp_path: Path) -> None:
    program = _changed(tmp_path, "marked.py", *([] if change is None else [change]))
    answer = signoff(program, cdna3["v_mfma_f32_32x32x4_2b_f16"], alike=["nan"], timeout=300)
    assert isinstance(answer, Holds if change is None else Fails)


@pytest.mark.slow
@pytest.mark.parametrize("change", [None, ("dot(a[4:], b[4:], dot(", "dot(a[4:], b[4:], 0.5 * dot(")])
def test_two_steps_with_marks_are_proved(change: tuple[str, str] | None, tmp_path: Path) -> None:
    program = _changed(tmp_path, "marked.py", *([] if change is None else [change])).replace(":dot", ":steps")
    model = cdna3["v_mfma_f32_32x32x4_2b_f16"].replace(k=8)
    answer = signoff(program, model, alike=["nan"], timeout=300)
    assert isinstance(answer, Holds if change is None else Fails)
