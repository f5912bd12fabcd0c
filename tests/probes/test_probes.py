"""The probes read back the parameters of models that they know as black boxes, and say where the types cannot tell."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from probe_table import BOUNDED, NOT_TOLD, READ, WRONG, compare, page
from property_table import distinct

from mmaformal import ARCHITECTURES, Instruction, ampere, cli, probe, sapphire_rapids
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.formats import FORMATS
from mmaformal.probes import Tree
from mmaformal.probes.box import Box, exact_code, factors_of, power
from mmaformal.probes.masks import masked, tree_of
from mmaformal.probes.modes import MODES, POINTS, agreeing
from mmaformal.recorder import RecorderError, program_of
from mmaformal.recorder.rows import RowLayout
from mmaformal.rounding import IEEE_FP32
from mmaformal.spaces import algorithms, details, models
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd
from mmaformal.summation import Node

PAGE = Path(__file__).resolve().parents[2] / "tables" / "probes.md"

UNSEEN_PRODUCT = {"a product that is subnormal in d": NOT_TOLD}
#: One of each algorithm and kind of types, and what is not read back of it; all the rest is.
NOT_READ: dict[str, dict[str, str]] = {
    "volta HMMA.884.F32.F32": {"e_zero": BOUNDED, **UNSEEN_PRODUCT},
    "volta HMMA.884.F16.F16": {},
    "ampere HMMA.1688.F32.TF32": {},
    "ada QMMA.16816.F32.E4M3.E4M3": {"e_zero": BOUNDED, **UNSEEN_PRODUCT},
    "hopper mma.m16n8k32.f16.e4m3.e4m3.f16": {
        "cut of c": NOT_TOLD,  # it is added last
        "e_zero": NOT_TOLD,
        "NaN": NOT_TOLD,
        **UNSEEN_PRODUCT,
    },
    "blackwell UTCQMMA.F16.E2M1.E2M1": {"cut of products": NOT_TOLD, "e_zero": NOT_TOLD, **UNSEEN_PRODUCT},
    "cdna1 v_mfma_f32_32x32x4f16": {"places kept": BOUNDED, "NaN": NOT_TOLD, **UNSEEN_PRODUCT},
    "cdna2 v_mfma_f32_32x32x4bf16_1k": {"NaN": NOT_TOLD},
    "cdna3 v_mfma_f32_32x32x4_2b_bf16": {"dot_bits": BOUNDED, "NaN": NOT_TOLD},
    "cdna3 v_mfma_f32_32x32x16_fp8_fp8": {
        "dot_bits": BOUNDED,
        "exponent of zero": BOUNDED,
        "NaN": NOT_TOLD,
        **UNSEEN_PRODUCT,
    },
    "ampere DMMA.884": {"NaN": NOT_TOLD},
    "sapphire_rapids VDPBF16PS": {},
    "sapphire_rapids VFMADD231PH": {},
    "armv8_6 BFMMLA": {},
    "apple_amx fma16.F32": UNSEEN_PRODUCT,
}


def named(label: str) -> Instruction:
    architecture, _, name = label.partition(" ")
    return ARCHITECTURES[architecture][name]


def not_read(instruction: Instruction) -> dict[str, str]:
    lines = compare(instruction.spec, probe(instruction))
    return {line.parameter: line.verdict for line in lines if line.verdict != READ}


@pytest.mark.parametrize("label", NOT_READ)
def test_parameters_are_read_back(label: str) -> None:
    assert not_read(named(label)) == NOT_READ[label]


def test_amx_is_two_chains_and_c_last() -> None:
    unit = sapphire_rapids["TDPBF16PS"].configured(8)
    assert not_read(unit) == {}
    tree = probe(unit).tree
    assert tree is not None
    assert tree.c_enters == "last"


@pytest.mark.slow
def test_groups_of_fp4_are_told_by_c_alone() -> None:
    unit = ARCHITECTURES["rtx_blackwell"]["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    assert not_read(unit) == {"cut of products": NOT_TOLD, "e_zero": BOUNDED, **UNSEEN_PRODUCT}


@pytest.mark.slow
def test_the_page_is_what_is_read_of_every_model() -> None:
    text, wrong = page(lambda line: None)
    assert wrong == 0
    assert text == PAGE.read_text(encoding="utf-8")


def test_the_page_has_every_specification() -> None:
    rows = PAGE.read_text(encoding="utf-8").partition("|---|")[2].splitlines()[1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [
        i[0].label for i in distinct().values()
    ]


# ---- a wrong model is noticed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "changes", "parameter"),
    [
        ("volta HMMA.884.F32.F32", {"F": 24}, "F"),
        ("volta HMMA.884.F32.F32", {"rho": "RNE-FP32"}, "ρ"),
        ("volta HMMA.884.F32.F32", {"rho": "RZ-E8M13"}, "ρ"),
        ("volta HMMA.884.F32.F32", {"L": 2}, "order"),
        ("volta HMMA.884.F16.F16", {"e_zero": -20}, "e_zero"),
        ("volta HMMA.884.F16.F16", {"e_zero": None}, "e_zero"),
        ("cdna3 v_mfma_f32_32x32x4_2b_bf16", {"F": 25}, "F (products)"),
        ("cdna3 v_mfma_f32_32x32x4_2b_bf16", {"sum_bits": 30}, "sum_bits"),
        ("cdna3 v_mfma_f32_32x32x4_2b_bf16", {"dot_bits": 31}, "dot_bits"),
        ("cdna3 v_mfma_f32_32x32x4_2b_bf16", {"cut": "RZ"}, "cut of c"),
        ("cdna3 v_mfma_f32_32x32x4_2b_bf16", {"skip_zero_products": False}, "zero products"),
        ("cdna2 v_mfma_f32_32x32x4bf16_1k", {"G": 2}, "order"),
        ("sapphire_rapids VFMADD231PH", {"nan": "DEFAULT"}, "NaN"),
    ],
)
def test_a_changed_parameter_is_noticed(label: str, changes: dict[str, Any], parameter: str) -> None:
    """The reading of a changed unit is not the model's; that of the changed model is."""
    model = named(label)
    changed = model.replace(**changes)
    found = probe(changed)
    assert WRONG in {x.verdict for x in compare(model.spec, found) if x.parameter == parameter}
    assert WRONG not in {x.verdict for x in compare(changed.spec, found)}


TYPES = [
    Types(*(FORMATS[name] for name in names.split()))
    for names in (
        "fp16 fp16 fp32 fp32",
        "fp16 fp16 fp16 fp16",
        "fp16 fp16 fp16 fp32",
        "bf16 bf16 fp32 fp32",
        "bf16 bf16 bf16 bf16",
        "tf32 tf32 fp32 fp32",
        "fp32 fp32 fp32 fp32",
        "e4m3 e4m3 fp32 fp32",
        "e5m2 e4m3 fp16 fp16",
        "e4m3fnuz e5m2fnuz fp32 fp32",
        "e3m2 e2m3 fp16 fp16",
        "e2m1 e2m1 fp32 fp32",
    )
]
SPACE: dict[tuple[Types, int, str], list[DotAdd]] = {}


@st.composite
def units(draw: st.DrawFn) -> DotAdd:
    """A model of any algorithm with any parameters, special values included."""
    found: list[DotAdd] = []
    while not found:
        key = (
            draw(st.sampled_from(TYPES)),
            draw(st.sampled_from((1, 2, 3, 4, 6, 8))),
            draw(st.sampled_from(algorithms())),
        )
        if key not in SPACE:
            SPACE[key] = list(islice(models(*key), 20000))
        found = SPACE[key]
    chance = draw(st.randoms(use_true_random=False))
    return chance.choice(list(islice(details(chance.choice(found)), 2000)))


def check_unit(spec: DotAdd) -> None:
    found = probe(Instruction("X", "unit", 1, 1, spec))
    assert not [(x.parameter, x.model, x.found) for x in compare(spec, found) if x.verdict == WRONG]


@settings(max_examples=4, deadline=None, database=None)
@given(units())
def test_nothing_wrong_is_read_of_any_unit(spec: DotAdd) -> None:
    check_unit(spec)


def test_c_is_read_where_it_is_a_term_itself() -> None:
    """In the second sum it has come through the first, whose zero products cut it: a random unit showed that."""
    e2m1, fp32 = FORMATS["e2m1"], FORMATS["fp32"]
    parameters = Gfdrda(23, 2, IEEE_FP32, skip_zero_products=False, c_reach=31)
    check_unit(DotAdd(4, e2m1, e2m1, fp32, fp32, parameters))


def test_c_that_is_added_exactly_says_nothing_of_the_exponent_of_zero() -> None:
    """A random unit showed that its parameters named c's least exponent, -126, as that of products of zero."""
    fp32 = FORMATS["fp32"]
    check_unit(DotAdd(3, fp32, fp32, fp32, fp32, DpaE9s12(3, 77, IEEE_FP32, detects_zeros=False)))


@pytest.mark.slow
@settings(max_examples=400, deadline=None, database=None)
@given(units())
def test_nothing_wrong_is_read_of_many_units(spec: DotAdd) -> None:
    check_unit(spec)


# ---- units that are no model ---------------------------------------------------------------------------------------

FP16 = {"a_format": "fp16", "b_format": "fp16", "c_format": "fp32", "d_format": "fp32"}


def answers(d: Callable[[int], NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        return d(len(c))

    return unit


def test_a_unit_that_answers_at_random_has_no_order() -> None:
    noise = np.random.default_rng(1)
    found = probe(answers(lambda n: noise.integers(0, 1 << 32, n, np.uint32)), k=4, **FP16)
    assert found.tree is None
    assert "not told" in found.summary
    assert "order of summation: no two sizes of a term pass every place alone" in str(found)


def test_a_unit_of_no_tree_is_said_to_be_none() -> None:
    """3 before 0 before 1 where there is a product 0; else 1 before 2 before 3: no tree has these masks."""
    first = Instruction("X", "unit", 1, 1, ampere["DMMA.884"].spec)
    other = first.spec.replace(product_order=(3, 0, 1, 2))
    second = Instruction("Y", "unit", 1, 1, other)

    def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        return np.where(a[:, 0] == 0, first.dot_add(a, b, c), second.dot_add(a, b, c))

    found = probe(unit, k=4, **dict.fromkeys(FP16, "fp64"))
    assert found.tree is None
    assert "no tree" in found.order


def test_what_is_no_unit_is_refused() -> None:
    with pytest.raises(TypeError, match="k and a_format and c_format are needed"):
        probe(lambda a, b, c: c)
    with pytest.raises(TypeError, match="has its own K and formats: k is not to be given"):
        probe(ampere["DMMA.884"], k=4)
    with pytest.raises(TypeError, match="a unit is an Instruction or a function, not 3"):
        probe(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="K = 1000: 1 to 96 products"):
        probe(lambda a, b, c: c, k=1000, **FP16)
    with pytest.raises(TypeError, match="dot_add gives float64"):
        probe(answers(np.zeros), k=2, **FP16)
    with pytest.raises(ValueError, match=r"an array of shape \(1,\) for \d+ rows"):
        probe(answers(lambda n: np.zeros(1, np.uint32)), k=2, **FP16)
    with pytest.raises(ValueError, match="is no code of fp32"):
        probe(answers(lambda n: np.full(n, 1 << 40, np.uint64)), k=2, **FP16)


def test_a_function_is_probed_as_its_model() -> None:
    unit = named("volta HMMA.884.F32.F32")
    found = probe(lambda a, b, c: unit.dot_add(a, b, c), k=4, name="chip", **FP16)
    same = probe(unit, name="chip")
    assert found == same
    assert found.summary.startswith("chip: keeps 23 fractional bits below the largest of 5 terms")


# ---- parts ---------------------------------------------------------------------------------------------------------


def test_every_rounding_has_answers_of_its_own() -> None:
    for name, mode in MODES.items():
        assert agreeing({x: Fraction(mode(x)) for x in POINTS}) == (name,)
    assert agreeing({Fraction(1, 4): Fraction(7)}) == ()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_of_numbers(fmt: Any) -> None:
    if not (fmt.has_zero and fmt.signed):
        return
    chance = random.Random(fmt.name)
    for _ in range(300):
        code = chance.randrange(fmt.codes) >> fmt.ignored_low_bits << fmt.ignored_low_bits
        if fmt.is_finite(code) and fmt.value(code) != 0:
            assert exact_code(fmt, fmt.value(code)) == code
    assert exact_code(fmt, power(fmt.max_exponent + 1)) is None
    assert exact_code(fmt, 1 + power(-fmt.fraction_bits - 1)) is None


def test_factors_of_products() -> None:
    e2m1, bf16 = FORMATS["e2m1"], FORMATS["bf16"]
    assert factors_of(e2m1, e2m1, Fraction(9, 4)) == (3, 3)
    assert factors_of(e2m1, e2m1, Fraction(5)) is None
    assert factors_of(bf16, bf16, Fraction(257)) is None
    found = factors_of(bf16, bf16, Fraction(3, 2) * power(-120))
    assert found is not None
    assert bf16.value(found[0]) * bf16.value(found[1]) == Fraction(3, 2) * power(-120)


def left(root: Node, n: int) -> NDArray[np.bool_]:
    """The masks of a tree: u at k is left if i and j meet in a sum that k is not in."""
    meets = {}
    for node in root.nodes:
        for x, y in permutations(node.parts, 2):
            meets |= dict.fromkeys(product(x, y), node.places)
    out = np.zeros((n, n, n), np.bool_)
    for (i, j), places in meets.items():
        for k in set(range(n)) - places:
            out[i, j, k] = True
    return out


def trees(places: list[int], chance: random.Random) -> Node | int:
    if len(places) == 1:
        return places[0]
    chance.shuffle(places)
    cuts = sorted(chance.sample(range(1, len(places)), chance.randint(1, min(3, len(places) - 1))))
    parts = [places[i:j] for i, j in zip([0, *cuts], [*cuts, len(places)], strict=True)]
    return Node(tuple(trees(part, chance) for part in parts))


@pytest.mark.parametrize("seed", range(20))
def test_any_tree_is_found_from_its_masks(seed: int) -> None:
    chance = random.Random(seed)
    root = trees(list(range(chance.randint(2, 14))), chance)
    assert isinstance(root, Node)
    n = len(root.places)
    masks = left(root, n)
    found = tree_of(masks)
    assert isinstance(found, Node)
    assert Tree(found, n - 1).shape == Tree(root, n - 1).shape
    if n > 3:
        i, j, k = chance.sample(range(n), 3)
        masks[i, j, k] = masks[j, i, k] = not masks[i, j, k]
        broken = tree_of(masks)
        assert isinstance(broken, str) or Tree(broken, n - 1).shape != Tree(root, n - 1).shape


def drawn() -> Iterator[Tree]:
    yield Tree(Node((Node((Node((0, 2)), Node((1, 3)))), 4)), 4)
    yield Tree.of(named("cdna3 v_mfma_f32_32x32x16_fp8_fp8").spec)
    yield Tree.of(named("ampere HMMA.16816.F32").spec)


def test_trees_as_text() -> None:
    pairs, grouped, chain = drawn()
    assert str(pairs).splitlines() == [
        "sum, rounded",
        "├─ sum, rounded",
        "│  ├─ sum, rounded",
        "│  │  ├─ product 0",
        "│  │  └─ product 2",
        "│  └─ sum, rounded",
        "│     ├─ product 1",
        "│     └─ product 3",
        "└─ c",
    ]
    assert str(grouped).splitlines() == [
        "fused sum of 17, rounded",
        "├─ group of 2, not rounded",
        "│  ├─ group of 8, not rounded",
        "│  │  └─ products 0, 2 … 14",
        "│  └─ group of 8, not rounded",
        "│     └─ products 1, 3 … 15",
        "└─ c",
    ]
    assert [tree.c_enters for tree in (pairs, grouped, chain)] == ["last", "once", "first"]


@pytest.mark.parametrize("tree", [*drawn()], ids=["pairs", "groups", "chain"])
def test_trees_as_svg(tree: Tree) -> None:
    """Every term and every sum is there once, within the drawing, terms in a row."""
    svg = ElementTree.fromstring(tree.to_svg())
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    texts = [
        (x.text or "", float(x.attrib["x"]), float(x.attrib["y"]))
        for x in svg.iter()
        if x.tag.endswith("text")
    ]
    assert all(0 < x < width and 0 < y < height for _, x, y in texts)
    terms = [(text, x, y) for text, x, y in texts if text == "c" or text.isdigit()]
    assert sorted(text for text, _, _ in terms) == sorted(["c", *map(str, range(tree.k))])
    assert len({y for _, _, y in terms}) == 1
    assert len({x for _, x, _ in terms}) == len(terms)
    assert len(texts) - len(terms) == len(tree.nodes)


def test_masks_are_rows_to_show() -> None:
    unit = named("volta HMMA.884.F32.F32")
    s = unit.spec
    box = Box(unit.dot_add, Types(s.a_format, s.b_format, s.c_format, s.d_format), 4)
    found = masked(box)
    assert found.rows
    for row in found.rows:
        again = unit.dot_add(
            np.array([row.a], np.uint16), np.array([row.b], np.uint16), np.array([row.c], np.uint32)
        )
        assert int(again[0]) == row.d
    assert found.rows[0].text(box.types).endswith("→ 0x0p+0")


# ---- the command ---------------------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(argv)
    return status, *capsys.readouterr()


def test_the_command_answers_in_its_first_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "order.svg"
    status, out, err = command(capsys, "probe", "volta", "HMMA.884.F32.F32", "--svg", str(path))
    assert (status, err) == (0, "")
    first = "volta HMMA.884.F32.F32: keeps 23 fractional bits below the largest of 5 terms that are summed at once; "
    assert out.splitlines()[0] == first + "results have 23, rounded toward zero (RZ)"
    assert path.read_text() == probe(named("volta HMMA.884.F32.F32")).tree.to_svg()  # type: ignore[union-attr]


def test_the_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, "probe", "volta", "HMMA.884.F32.F32", "--replace", "F=24", "--json")
    found = json.loads(out)
    assert status == 0
    assert [each["product"]["places"] for each in found["sums"]] == [24]
    assert found["order"]["tree"]["terms"] == ["c", 0, 1, 2, 3]
    assert found["sums"][0]["rounded"]["roundings"] == ["RZ"]
    assert all({"a", "b", "c", "d"} == set(row) for row in found["order"]["rows"])


def test_the_command_used_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = command(capsys, "probe", "volta", "HMMA.9")
    assert (status, out) == (2, "")
    assert "HMMA.9" in err
    status, _, err = command(capsys, "probe", "ampere", "DMMA.884", "--k", "400")
    assert status == 2
    assert "K = 400: 1 to 96 products can be probed" in err


# ---- units that are there ------------------------------------------------------------------------------------------


def live(instruction: Instruction, folder: Path) -> Callable[..., NDArray[Any]]:
    """The unit of this machine, or an emulated one, as a function."""
    try:
        program = program_of(instruction)
    except RecorderError as error:
        pytest.skip(str(error))
    layout, executable = RowLayout(instruction), folder / "unit"
    source = executable.with_suffix(program.suffix)
    source.write_text(program.source)
    subprocess.run(program.build(str(source), str(executable)), check=True)

    def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        rows = np.zeros(len(c), layout.dtype)
        rows["a"], rows["b"], rows["c"] = a, b, c
        head = f"{layout.title}\n{json.dumps({'rows': len(c), 'seed': 0})}\n".encode()
        command = [*program.runner, str(executable)]
        done = subprocess.run(command, input=head + rows.tobytes(), capture_output=True, check=False)
        if done.returncode:
            pytest.skip(done.stderr.decode())
        return np.frombuffer(done.stdout.split(b"\n", 3)[3], layout.dtype)["d"].copy()

    return unit


@pytest.mark.slow
@pytest.mark.parametrize(
    "label",
    ["sapphire_rapids VDPBF16PS", "sapphire_rapids VFMADD231PH", "armv8_6 BFDOT", "armv8_6 BFMMLA"],
)
def test_units_that_are_there_are_read_as_their_models(label: str, tmp_path: Path) -> None:
    i = named(label)
    formats = {f"{side}_format": getattr(i, f"{side}_format") for side in "abcd"}
    assert probe(live(i, tmp_path), k=i.k, name=label, **formats) == probe(i)


@pytest.mark.parametrize("timeout", [1e-3, 1.0])
def test_no_report_is_later_than_its_limit(timeout: float, capsys: pytest.CaptureFixture[str]) -> None:
    unit = ARCHITECTURES["hopper"]["HMMA.16816.F32"].chained(96)  # takes some 20 s
    start = time.monotonic()
    found = probe(unit, timeout=timeout)
    assert time.monotonic() - start < timeout + 10
    assert not found.complete
    assert "is not told: the time was up" in found.summary
    assert "the time was up before everything was read and checked" in str(found)
    assert found.to_json()["complete"] is False
    words = ["probe", "hopper", "HMMA.16816.F32", "--k", "96", "--timeout", str(timeout)]
    assert cli.main(words) == 3
    assert "the time was up" in capsys.readouterr().out
    with pytest.raises(ValueError, match="above 0"):
        probe(unit, timeout=0)
