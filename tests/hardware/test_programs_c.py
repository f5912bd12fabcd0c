"""A function in C against a model: what is read of it, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import z3
from numpy.typing import NDArray

from mmaformal import datapath
from mmaformal.cases.evaluate import evaluate, evaluate_all
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.matching import values_of
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.programs import llvm_clang
from mmaformal.hardware.programs.llvm_run import Runner
from mmaformal.hardware.programs.llvm_text import read_text
from mmaformal.hardware.programs.llvm_values import IrValue, IrWord, only_word
from mmaformal.hardware.sources import Sources, sources_of
from mmaformal.queries.signoff import signoff
from mmaformal.queries.signoff_program import SigningProgram
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session
from mmaformal.spec import DotAdd

PROGRAMS = Path(__file__).parent / "programs_c"
FMA = datapath["fma(k=1,a=e5m2,c=e5m2,rho=IEEE-E5M2)"]
DOT = datapath["fda(k=4,frac_bits=24,a=bf16,rho=RZ-FP32,e_zero=-253)"]

try:
    llvm_clang.clang()
    _MISSING = ""
except HardwareError as error:
    _MISSING = str(error)
needs_clang = pytest.mark.skipif(bool(_MISSING), reason=_MISSING)


def program(name: str, *defines: str, spec: DotAdd = FMA.spec, said: PortMap | None = None) -> Wired:
    """A function of a test's program, as `dot4.c:dot4`."""
    return wired(sources_of(str(PROGRAMS / name), None, defines), spec, said, timeout=60)


def slow_but(names: Iterable[str], quick: str) -> list[object]:
    """Parameters of which all but some are slow tests."""
    return [pytest.param(x, marks=[] if x in quick.split() else [pytest.mark.slow]) for x in names]


def rows_of(count: int, spec: DotAdd = FMA.spec) -> Rows:
    return generate(spec, count, seed=3, distributions=("bits", "edge"))


# ---- each operation, as a processor does it ---------------------------------------------------------------------

_WIDTHS = (8, 16, 24, 32, 64)


def _top(x: int, bits: int) -> int:
    return x - ((x >> (bits - 1)) << bits)


def _pairs(bits: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Operands of so many bits: all pairs of special ones, and random ones, half of them small."""
    random = np.random.default_rng(bits)
    ones, half = (1 << bits) - 1, 1 << (bits - 1)
    edge = [0, 1, 2, 3, bits - 1, bits, bits + 1, half - 1, half, half + 1, ones - 1, ones]
    found = [(x, y) for x in edge for y in edge]
    for _ in range(300):
        x, y = (int(random.integers(0, 1 << 63)) * 2 + int(random.integers(0, 2)) for _ in range(2))
        found.append((x & ones, (y if random.integers(0, 2) else y % (bits + 3)) & ones))
    x, y = zip(*found, strict=True)
    return np.array(x, object), np.array(y, object)


def _fits(x: int, bits: int, signed: bool) -> bool:
    return -(1 << (bits - 1)) <= x < 1 << (bits - 1) if signed else 0 <= x < 1 << bits


def _exact(op: str, x: int, y: int, bits: int, signed: bool) -> int:
    """Return the result of an operation of whole numbers, however large."""
    u, v = (_top(x, bits), _top(y, bits)) if signed else (x, y)
    return {"add": u + v, "sub": u - v, "mul": u * v}[op]


def _defined(op: str, flags: str, x: int, y: int, bits: int) -> bool:
    """Whether LLVM's language reference gives an operation a value."""
    if op in ("add", "sub", "mul"):
        return all(
            _fits(_exact(op, x, y, bits, signed), bits, signed)
            for flag, signed in (("nsw", True), ("nuw", False))
            if flag in flags
        )
    if op in ("shl", "lshr", "ashr"):
        if y >= bits:
            return False
        signed = _top(x, bits) << y
        lost = x & ((1 << y) - 1)
        return not (
            ("nsw" in flags and not _fits(signed, bits, True))
            or ("nuw" in flags and not _fits(x << y, bits, False))
            or ("exact" in flags and lost)
        )
    if op in ("udiv", "urem", "sdiv", "srem"):
        if y == 0 or (op[0] == "s" and x == 1 << (bits - 1) and y == (1 << bits) - 1):
            return False
        u, v = (_top(x, bits), _top(y, bits)) if op[0] == "s" else (x, y)
        return "exact" not in flags or u % v == 0
    return "disjoint" not in flags or x & y == 0


_OPERATIONS = (
    *((op, flags) for op in ("add", "sub", "mul") for flags in ("", "nsw", "nuw", "nuw nsw")),
    *(("shl", flags) for flags in ("", "nsw", "nuw", "nuw nsw")),
    *((op, flags) for op in ("lshr", "ashr", "udiv", "sdiv") for flags in ("", "exact")),
    *((op, "") for op in ("urem", "srem", "and", "xor", "or")),
    ("or", "disjoint"),
)
_CALLED = ("umin", "umax", "smin", "smax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat", "fshl", "fshr")
_CALLED_ONE = ("ctpop", "bitreverse", "ctlz", "cttz", "abs", "bswap")
_COMPARED = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")
_OVERFLOWING = tuple(f"{sign}{op}.with.overflow" for sign in "us" for op in ("add", "sub", "mul"))


def _functions(bits: int) -> dict[str, tuple[str, Callable[[int, int], bool]]]:
    """A function of LLVM's IR for each operation of two words of so many bits, and where it has a value."""
    t = f"i{bits}"
    always: Callable[[int, int], bool] = lambda x, y: True  # noqa: E731
    found: dict[str, tuple[str, Callable[[int, int], bool]]] = {}
    for op, flags in _OPERATIONS:
        where = lambda x, y, op=op, flags=flags: _defined(op, flags, x, y, bits)  # noqa: E731
        found[f"{op} {flags}"] = (f"%r = {op} {flags} {t} %x, %y", where)
    for name in _CALLED:
        last = ", " + t + " %y" if name[:2] == "fs" else ""
        found[name] = (f"%r = call {t} @llvm.{name}.{t}({t} %x, {t} %y{last})", always)
    for name in _CALLED_ONE:
        if name == "bswap" and bits % 16:
            continue
        if name not in ("ctlz", "cttz", "abs"):
            found[name] = (f"%r = call {t} @llvm.{name}.{t}({t} %x)", always)
            continue
        worst = 1 << (bits - 1) if name == "abs" else 0
        for flag in ("false", "true"):
            where = lambda x, y, flag=flag, worst=worst: flag == "false" or x != worst  # noqa: E731
            found[f"{name} {flag}"] = (f"%r = call {t} @llvm.{name}.{t}({t} %x, i1 {flag})", where)
    for name in _COMPARED:
        found[f"icmp {name}"] = (f"%c = icmp {name} {t} %x, %y\n  %r = select i1 %c, {t} %x, {t} 9", always)
    for name in _OVERFLOWING:
        pair = f"{{ {t}, i1 }}"
        found[name] = (
            f"%p = call {pair} @llvm.{name}.{t}({t} %x, {t} %y)\n  %v = extractvalue {pair} %p, 0\n"
            f"  %o = extractvalue {pair} %p, 1\n  %w = sext i1 %o to {t}\n  %r = xor {t} %v, %w",
            always,
        )
    for other in (3, 8, 40, 100):
        if other < bits:
            found[f"trunc {other}"] = (
                f"%n = trunc {t} %x to i{other}\n  %r = zext i{other} %n to {t}",
                always,
            )
            found[f"sext {other}"] = (
                f"%n = trunc {t} %x to i{other}\n  %r = sext i{other} %n to {t}",
                always,
            )
        elif other > bits:
            found[f"wide {other}"] = (
                f"%n = sext {t} %x to i{other}\n  %m = zext {t} %y to i{other}\n  %s = mul i{other} %n, %m\n"
                f"  %h = lshr i{other} %s, {min(bits, other - bits)}\n  %r = trunc i{other} %h to {t}",
                always,
            )
    return found


@pytest.mark.parametrize(
    "bits", [pytest.param(x, marks=[pytest.mark.slow] if x != 24 else []) for x in _WIDTHS]
)
def test_operations_give_what_a_processor_gives(bits: int) -> None:
    """Each operation on special and random words, compiled by LLVM and run, is what its term is, wherever it has a
    value; and it has none where LLVM's language reference, written once more above, says so.
    """
    import ctypes

    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    functions = _functions(bits)
    t = f"i{bits}"
    lines = []
    for i, (body, _) in enumerate(functions.values()):
        lines.append(f"define {t} @f{i}({t} %x, {t} %y) {{\n  {body}\n  ret {t} %r\n}}")
        lines.append(
            f"define void @run{i}(i64 %n, ptr %xs, ptr %ys, ptr %rs) {{\nentry:\n  br label %loop\nloop:\n"
            f"  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n  %at = mul i64 %i, 8\n"
            + "".join(f"  %{v}p = getelementptr i8, ptr %{v}s, i64 %at\n" for v in "xyr")
            + "".join(f"  %{v} = load {t}, ptr %{v}p\n" for v in "xy")
            + f"  %r = call {t} @f{i}({t} %x, {t} %y)\n  store {t} %r, ptr %rp\n  %next = add i64 %i, 1\n"
            "  %more = icmp ult i64 %next, %n\n  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}"
        )
    module = llvm.parse_assembly("\n".join([*_declared(bits), *lines]))
    text = read_text(str(module))
    engine = llvm.create_mcjit_compiler(
        module, llvm.Target.from_default_triple().create_target_machine(opt=1)
    )
    engine.finalize_object()
    x, y = _pairs(bits)
    for i, (name, (_, has_value)) in enumerate(functions.items()):
        defined = np.array([has_value(int(u), int(v)) for u, v in zip(x, y, strict=True)])
        u, v = (np.where(defined, each, 1).astype(np.uint64) for each in (x, y))
        v = np.where(defined, v, 0 if "disjoint" in name else 1).astype(np.uint64)  # a pair that has a value
        run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(
            engine.get_function_address(f"run{i}")
        )
        r = np.zeros(len(u), np.uint64)
        run(len(u), u.ctypes.data, v.ctypes.data, r.ctypes.data)
        term, undefined = _terms(text, f"@f{i}", bits)
        values = {"x": x, "y": y}
        mine, not_defined = evaluate(term, values), evaluate(undefined, values)
        assert (np.broadcast_to(not_defined, len(x)) == ~defined).all(), name
        wrong = np.flatnonzero((np.broadcast_to(mine, len(x)) != r.astype(object)) & defined)
        assert not len(wrong), f"{name} of {x[wrong[0]]:#x} and {y[wrong[0]]:#x}: {mine[wrong[0]]:#x}"


def _declared(bits: int) -> list[str]:
    t = f"i{bits}"
    one = [
        f"declare {t} @llvm.{x}.{t}({t})"
        for x in ("ctpop", "bitreverse", *(["bswap"] if bits % 16 == 0 else []))
    ]
    flagged = [f"declare {t} @llvm.{x}.{t}({t}, i1)" for x in ("ctlz", "cttz", "abs")]
    two = [f"declare {t} @llvm.{x}.{t}({t}, {t})" for x in _CALLED if x[:2] != "fs"]
    three = [f"declare {t} @llvm.{x}.{t}({t}, {t}, {t})" for x in ("fshl", "fshr")]
    pair = [f"declare {{ {t}, i1 }} @llvm.{x}.{t}({t}, {t})" for x in _OVERFLOWING]
    return [*one, *flagged, *two, *three, *pair]


def _terms(text: object, name: str, bits: int) -> tuple[z3.ExprRef, z3.BoolRef]:
    """The term of a function's value, and that it has none."""
    runner = Runner(text)  # type: ignore[arg-type]
    words: list[IrValue] = [IrWord(z3.BitVec(each, bits)) for each in "xy"]
    state = runner.call(runner.text.functions[name], words, runner.memory, ())
    assert state is not None
    undefined = z3.Or([z3.BoolVal(False), *(each.when for each in runner.findings)])
    return only_word(state.values["return"]).term, undefined


# ---- what C has besides --------------------------------------------------------------------------------------

_CONSTRUCTS = (
    "table_of_constants switches loops normalise jumps locals structs struct_by_value bit_fields memories recursion "
    "builtins overflows widths own_variable through_pointer methods own_names"
)


@needs_clang
@pytest.mark.parametrize(
    "name", slow_but(_CONSTRUCTS.split(), "locals struct_by_value bit_fields methods own_names")
)
def test_constructs_are_read_as_they_are_compiled(name: str) -> None:
    """A function's terms give what the function gives as it is compiled, on random and special bytes."""
    file = {"methods": "methods.cpp", "own_names": "own_names.c"}.get(name, "constructs.c")
    found = program(f"{file}:{name}")
    assert found.behaviour is not None
    rows, plain = rows_of(500), found.behaviour.plain
    values = values_of(symbolic_inputs(FMA.spec), rows)
    values |= {str(x): np.zeros(1, object) for x in plain.undefined.values()}
    claims = [each.when for each in found.behaviour.findings]
    done = evaluate_all([plain.outputs["d"], *claims], values)
    mine = done[plain.outputs["d"].get_id()]
    assert (mine.astype(np.uint64) == found.behaviour.run(rows)).all()
    assert not any(np.any(done[each.get_id()]) for each in claims), "defined for every input"


@needs_clang
def test_what_runs_before_main_is_refused() -> None:
    with pytest.raises(HardwareError, match=r"what runs before main .* is not read"):
        program("started.c:started")


@needs_clang
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("external", r"refused\.c:\d+: elsewhere is called, whose text is not here: .*"),
        ("assembly", r"refused\.c:\d+: inline assembly is not read: .*"),
        ("floating", r"refused\.c:\d+: floating-point is not read: .*"),
        ("variable", r"refused\.c:\d+: counter is used, whose value is not here: .*"),
        (
            "through_function",
            r"refused\.c:\d+: a call through an address that depends on the inputs is not read: .*",
        ),
        ("volatiles", r"refused\.c:\d+: volatile and atomic variables are not read: .*"),
        ("of_floats", r"which input is a, of 8 bits\? There are a \(32\), b \(32\), c \(32\); say .*"),
        ("nothing", r"there is no function nothing in refused\.c"),
    ],
)
def test_what_is_refused(name: str, said: str) -> None:
    """A program that is not read is refused in one line, with file and line."""
    with pytest.raises(HardwareError, match=f"^{said}$"):
        program(f"refused.c:{name}")


@needs_clang
def test_a_loop_without_a_bound_ends() -> None:
    """Reading has a limit."""
    with pytest.raises(HardwareError, match=r"refused\.c:\d+: the time given was up in reading: a loop"):
        wired(sources_of(str(PROGRAMS / "refused.c:no_bound")), FMA.spec, timeout=0.3)


def test_programs_are_named_with_their_functions() -> None:
    """The function is named behind the file; without one, or with more files, that is said."""
    assert sources_of(str(PROGRAMS / "dot4.c:dot4")).complete().top == "dot4"
    for sources in (
        sources_of(str(PROGRAMS / "dot4.c")),
        Sources((PROGRAMS / "dot4.c", PROGRAMS / "fma.c"), "fma"),
    ):
        with pytest.raises(HardwareError, match=r"a function of it is named, as dot4\.c:NAME"):
            sources.complete()


def test_without_clang_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without clang is told what to install."""
    monkeypatch.setattr(llvm_clang.shutil, "which", lambda name: None)
    with pytest.raises(HardwareError, match=r"^there is no clang, .* install it"):
        program("fma.c:fma")


@needs_clang
def test_ports_are_parameters() -> None:
    """Arrays are the products' codes, and a pointer to what is not constant the result."""
    found = program("dot4.c:dot4", "K=2", spec=datapath["fda(k=2,frac_bits=24,a=bf16)"].spec)
    assert found.told[0] == "ports: a = a; b = b; c = c; d = return (guessed)"
    assert "a has 2 elements of 16 bits" in found.told[1]
    found = program("constructs.c:through_pointer")
    assert str(found.driven.wiring.result) == "d"
    found = program("constructs.c:switches", said=PortMap({"a": "b", "b": "a"}, {}))
    assert found.told[0].startswith("ports: a = b; b = a")


# ---- undefined behaviour ------------------------------------------------------------------------------------


def _signed(x: int) -> int:
    return x - 256 if x > 127 else x


#: For which a, b and c the functions of undefined.c are undefined, and what it is called.
_UNDEFINED: dict[str, tuple[Callable[[int, int, int], bool], str]] = {
    "over_shift": (lambda a, b, c: b > 31, "a shift of 32 bits by 32 or more"),
    "negative_shift": (lambda a, b, c: not 0 <= b - 128 <= 31, "a shift of 32 bits by 32 or more"),
    "signed_overflow": (lambda a, b, c: (a << 16) * (b << 7) >= 1 << 31, "mul of 32 bits overflows (signed)"),
    "unused_overflow": (
        lambda a, b, c: not -(1 << 30) <= _signed(a << 23 >> 24 & 255) << 24 | (a & 1) << 23 < 1 << 30,
        "add of 32 bits overflows (signed)",
    ),
    "division": (lambda a, b, c: b == 0, "a division by zero"),
    "least_divided": (lambda a, b, c: a == 128 and b == 255, "a quotient that overflows"),
    "beyond_table": (lambda a, b, c: a & 31 > 15, "reads beyond the ends of table"),
    "before_table": (lambda a, b, c: a & 15 == 0, "reads beyond the ends of table"),
    "beyond_argument": (lambda a, b, c: c > 127, "reads beyond the ends of a"),
    "beyond_local": (lambda a, b, c: c >> 5 > 3, "writes beyond the ends of kept"),
    "not_set": (lambda a, b, c: a == 77, "what nothing has set is used"),
    "zeros_of_zero": (lambda a, b, c: a == 0, "leading zeros of 0 are counted"),
    "no_value": (lambda a, b, c: a == b, "the result is not set"),
    "unreachable": (lambda a, b, c: a == 200 and b == 3, "reached without one"),
    "dead_variable": (lambda a, b, c: a == 9, "after the function that it belongs to has returned"),
    "null_address": (lambda a, b, c: a == 5, "reads at a null address"),
    "strange_bool": (lambda a, b, c: a > 1, "a bool is read that is neither 0 nor 1"),
    "overlapping": (lambda a, b, c: a == b, "copies between bytes that overlap"),
    "aborts": (lambda a, b, c: a > 250, "abort is called"),
}


@needs_clang
@pytest.mark.parametrize(
    "name", slow_but(_UNDEFINED, "over_shift signed_overflow not_set beyond_table overlapping strange_bool")
)
def test_undefined_behaviour_is_found_where_it_is(name: str) -> None:
    """The claims of undefined behaviour are true for those inputs for which C's rules say so, and for no others."""
    undefined, what = _UNDEFINED[name]
    found = program(f"undefined.c:{name}")
    assert found.behaviour is not None
    assert any(what in str(each) and "undefined.c:" in str(each) for each in found.behaviour.findings)
    rows = rows_of(3000)
    a, b, c = rows.a[:, 0], rows.b[:, 0], rows.c
    a[:600:3], b[1:600:3], a[2:600:6] = (
        (200, 5, 9)[len(name) % 3],
        3,
        b[2:600:6],
    )  # what random bytes seldom are
    a[600:900] = np.repeat(np.array([5, 9, 77, 128, 200, 251], np.uint64), 50)
    b[600:900] = np.tile(np.array([0, 3, 255, 31, 32], np.uint64), 60)
    truth = np.array([undefined(*map(int, each)) for each in zip(a, b, c, strict=True)])
    claim = z3.Or([each.when for each in found.behaviour.findings])
    values = values_of(symbolic_inputs(FMA.spec), rows)
    values |= {str(x): np.zeros(1, object) for x in found.module.undefined.values()}
    assert truth.any()
    assert (evaluate(claim, values) == truth).all()


# ---- signed off -------------------------------------------------------------------------------------------------


@needs_clang
def test_an_over_shift_is_found_with_its_input() -> None:
    """A solver is asked before anything else whether a shift may be too long, and an input is run to be sure."""
    design = program("fma.c:fma", "E5M2", "UB_SHIFT")
    with session(None, 1024, False) as portfolio:
        signed = SigningProgram(design, FMA, Asker(portfolio, 30), lambda _: None)
        codes = signed._undefined()
        assert isinstance(codes, type(rows_of(1)[0]))
        assert signed._undefined_at(codes)[0].startswith("a shift of 32 bits by 32 or more")


@needs_clang
def test_what_is_read_wrongly_is_not_proved() -> None:
    """Where the program itself gives another d than its terms, that is an error, and no proof."""
    design = program("constructs.c:jumps")
    assert design.behaviour is not None
    broken = replace(design.behaviour, run=lambda rows: np.zeros(len(rows), np.uint64))
    with session(None, 1024, False) as portfolio:
        signed = SigningProgram(replace(design, behaviour=broken), FMA, Asker(portfolio, 30), lambda _: None)
        with pytest.raises(HardwareError, match=r"jumps of constructs\.c was read wrongly"):
            signed.check_run(rows_of(50))


_BUGS = ("HIDDEN", "STICKY", "TIES", "OVERFLOW", "INVALID", "ZERO", "SIGN")


@pytest.mark.slow
@needs_clang
def test_an_fma_is_proved() -> None:
    """The right one is IEEE 754's, and its behaviour is never undefined."""
    answer = signoff(str(PROGRAMS / "fma.c:fma"), FMA, defines=["E5M2"], timeout=500)
    assert isinstance(answer, Holds), answer
    assert "its behaviour is never undefined" in answer.question
    assert any("as it is compiled gives the same d" in note for note in answer.notes)


@pytest.mark.slow
@needs_clang
@pytest.mark.parametrize("bug", [*(f"BUG_{x}" for x in _BUGS), "UB_SHIFT", "UB_CLZ", "UB_OVERFLOW"])
def test_an_fma_with_a_bug_is_refuted(bug: str) -> None:
    """Each bug is found, with an input that is proved minimal, on which the compiled function is wrong too."""
    answer = signoff(str(PROGRAMS / "fma.c:fma"), FMA, defines=["E5M2", bug], timeout=500)
    assert isinstance(answer, Fails), answer
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    assert not any("best found" in each for each in witness.minimality)
    said = "\n".join(witness.notes)
    assert ("undefined behaviour: " if bug[:2] == "UB" else "as it is compiled gives this d") in said


@pytest.mark.slow
@needs_clang
def test_a_dot_product_is_right_in_random_cases() -> None:
    """A dot product of four in fixed point, with loops, arrays and structs, is never wrong in random cases,
    as terms and as it is compiled.
    """
    design = program("dot4.c:dot4", spec=DOT.spec)
    with session(None, 1024, False) as portfolio:
        signed = SigningProgram(design, DOT, Asker(portfolio, 300), lambda _: None)
        assert signed.random() is None
        signed.check_run(signed.drawn(4000, 9))


@pytest.mark.slow
@needs_clang
@pytest.mark.parametrize(
    "bug", ["BUG_FLOOR", "BUG_CLAMP", "BUG_INVALID", "BUG_MAXIMUM", "UB_SHIFT", "UB_READ"]
)
def test_a_dot_product_with_a_bug_is_refuted(bug: str) -> None:
    """Each bug is found."""
    answer = signoff(str(PROGRAMS / "dot4.c:dot4"), DOT, defines=[bug], timeout=300)
    assert isinstance(answer, Fails), answer
