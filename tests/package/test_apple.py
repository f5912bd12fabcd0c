"""Apple AMX: an instruction's words, and what it does to a state, held against an emulator's recordings."""

from __future__ import annotations

import runpy
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaformal.apple import (
    FIELDS,
    MOVES,
    NUMBERS,
    OPS,
    AmxOperand,
    AmxState,
    Transfer,
    Word,
    disassemble,
    execute,
    move,
    tables,
)
from mmaformal.encodings.amx import executable as amx
from mmaformal.studies.amx.terms import execute_terms

RECORDED = (
    Path(__file__).resolve().parents[3] / "shared" / "recordings" / "processors" / "apple_amx_emulated.npz"
)

operands = st.builds(
    AmxOperand, **{name: st.integers(0, (1 << width) - 1) for name, (_, width) in FIELDS.items()}
)


# ---- words -----------------------------------------------------------------------------------------------------------


@given(operands)
def test_an_operand_is_its_fields(operand: AmxOperand) -> None:
    assert AmxOperand.decode(operand.encode()) == operand


@given(st.integers(0, (1 << 64) - 1))
def test_bits_that_are_no_fields_are_left_out(bits: int) -> None:
    used = sum(((1 << width) - 1) << low for low, width in FIELDS.values())
    assert AmxOperand.decode(bits).encode() == bits & used


def test_fields_lie_where_the_tables_have_them() -> None:
    assert AmxOperand(vector=1).encode() == 1 << 63
    assert AmxOperand(z_row=63, x_offset=511, y_offset=511).encode() == 63 << 20 | 511 << 10 | 511
    assert AmxOperand.decode(1 << 41 | 3 << 46) == AmxOperand(x_enable_mode=3, x_enable_value=1)
    assert str(AmxOperand(z_row=4, skip_z=1)) == "z_row=4 skip_z=1"
    assert str(AmxOperand()) == "0"


@pytest.mark.parametrize("wrong", [{"z_row": 64}, {"vector": 2}, {"x_offset": -1}, {"y_offset": 1.0}])
def test_a_field_that_does_not_fit_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} has "):
        AmxOperand(**wrong)


def test_words_and_their_disassembly() -> None:
    for name in (*NUMBERS, *MOVES):
        for register in range(32):
            word = Word(name, register)
            assert Word.decode(word.encode()) == word
    for name, last in (("set", 0x20), ("clr", 0x21)):
        assert Word(name).encode() == 0x00201200 | last
        assert Word.decode(Word(name).encode()) == Word(name)
        assert str(Word(name)) == name
    assert Word.decode(0x00201222) is None
    assert Word("fma32", 3).encode() == 0x00201000 | 12 << 5 | 3
    nop = 0xD503201F
    assert list(disassemble([Word("fma16", 31).encode(), nop])) == [
        "       0:  002011ff  fma16 xzr",
        "       4:  d503201f  .word 0xd503201f",
    ]
    found = [Word.decode(0x00201000 | op << 5) for op in range(32)]
    assert [word.name for word in found if word] == [
        *MOVES, "extrh", "extrv", "fma64", "fms64", "fma32", "fms32", "mac16", "fma16", "fms16", "set", "vecint",
        "vecfp", "matint", "matfp", "genlut",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="32 bits"):
        list(disassemble([1 << 32]))


# ---- states ----------------------------------------------------------------------------------------------------------


def recorded() -> list[tuple[str, int, bytes, bytes, bytes, bytes]]:
    if not RECORDED.exists():
        pytest.skip(f"no {RECORDED.name}")
    with np.load(RECORDED) as d:
        return [(f"fma{d['op'][n]}", int(d["operand"][n]), *(d[k][n].tobytes() for k in ("x", "y", "z", "z_after")))
                for n in range(len(d["op"]))]  # fmt: skip


def test_every_byte_is_as_the_emulator_has_it() -> None:
    cases = recorded()
    assert len(cases) == 120
    for name, operand, x, y, z, after in cases:
        assert execute(AmxState(x, y, z), name, operand) == AmxState(x, y, after)


@pytest.mark.parametrize("name", list(OPS))
def test_a_state_of_each_is_as_the_emulator_has_it_in_the_smt_encoding(name: str) -> None:
    operand, x, y, z, after = next(rest for op, *rest in recorded() if op == name)
    assert execute_terms(AmxState(x, y, z), name, operand) == AmxState(x, y, after)


@pytest.mark.slow
def test_every_byte_is_as_the_emulator_has_it_in_the_smt_encoding() -> None:
    for name, operand, x, y, z, after in recorded():
        assert execute_terms(AmxState(x, y, z), name, operand) == AmxState(x, y, after)


def codes(form: str, *values: float) -> bytes:
    return struct.pack(f"<{len(values)}{form}", *values)


def pool(row: bytes) -> bytes:
    return row + bytes(512 - len(row))


def test_an_outer_product_of_fp32() -> None:
    x, y = codes("f", *range(16)), codes("f", *range(1, 17))
    state = execute(AmxState(pool(x), pool(y)), "fma32", AmxOperand(z_row=2))
    for r in range(64):
        expected = [float(i * (r // 4 + 1)) if r % 4 == 2 else 0.0 for i in range(16)]
        assert list(struct.unpack("<16f", state.row(r))) == expected


def test_fp16_onto_fp32_fills_all_of_z() -> None:
    x, y = codes("e", *range(32)), codes("e", *range(1, 33))
    state = execute(AmxState(pool(x), pool(y)), "fma16", AmxOperand(z_f32=1, z_row=9))
    for i in range(32):
        for j in range(32):
            assert struct.unpack("<16f", state.row(2 * j + i % 2))[i // 2] == i * (j + 1)


@pytest.mark.parametrize(
    ("skipped", "expected"),
    [("", 3 * 5 + 7), ("z", 15), ("y", 10), ("yz", 3), ("x", 12), ("xz", 5), ("xy", 7), ("xyz", 0)],
)
def test_what_is_skipped(skipped: str, expected: float) -> None:
    operand = AmxOperand(vector=1, z_row=1, **{f"skip_{name}": 1 for name in skipped})
    z = bytes(64) + codes("d", *[7.0] * 8) + bytes(4096 - 128)
    after = execute(AmxState(pool(codes("d", *[3.0] * 8)), pool(codes("d", *[5.0] * 8)), z), "fma64", operand)
    assert struct.unpack("<8d", after.row(1)) == (expected,) * 8


def test_x_alone_passes_through_and_a_nan_of_arithmetic_is_the_default_one() -> None:
    signalling = struct.pack("<16I", *[0xFF800001] * 16)
    state = AmxState(pool(signalling), pool(codes("f", *[1.0] * 16)))
    alone = execute(state, "fma32", AmxOperand(vector=1, skip_y=1, skip_z=1))
    assert alone.row(0) == signalling
    times = execute(state, "fma32", AmxOperand(vector=1, skip_z=1))
    assert times.row(0) == struct.pack("<16I", *[0x7FC00000] * 16)
    converted = execute(
        AmxState(pool(struct.pack("<32H", *[0xFE01] * 32))),
        "fma32",
        AmxOperand(vector=1, skip_y=1, skip_z=1, x_f16=1),
    )
    assert converted.row(0) == struct.pack("<16I", *[0x7FC00000] * 16)


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        (0, 0, range(8)), (0, 1, range(1, 8, 2)), (0, 2, range(0, 8, 2)), (0, 3, ()), (0, 9, ()), (0, 16, ()),
        (1, 3, [3]), (1, 11, [3]), (2, 3, range(3)), (2, 8, range(8)), (2, 0, range(8)), (3, 2, [6, 7]),
        (3, 16, range(8)),
    ],
)  # fmt: skip
def test_which_lanes_take_part(mode: int, value: int, expected: list[int]) -> None:
    state = AmxState(pool(codes("d", *[1.0] * 8)))
    after = execute(
        state, "fma64", AmxOperand(vector=1, skip_y=1, skip_z=1, x_enable_mode=mode, x_enable_value=value)
    )
    assert [i for i, z in enumerate(struct.unpack("<8d", after.row(0))) if z] == list(expected)


def test_offsets_go_around_the_pool() -> None:
    x = bytes(range(256)) * 2
    after = execute(AmxState(x), "fma64", AmxOperand(vector=1, skip_y=1, skip_z=1, x_offset=509))
    assert after.row(0) == (x + x)[509 : 509 + 64]


@settings(max_examples=4)
@given(st.sampled_from(list(OPS)), operands)
def test_all_elements_at_once_are_those_one_by_one(name: str, operand: AmxOperand) -> None:
    rng = np.random.default_rng(operand.encode())
    x, y, z = (rng.integers(0, 256, size, np.uint8).tobytes() for size in (512, 512, 4096))
    bits = operand.encode()
    one_by_one = amx.execute(name, amx.State(x, y, z), bits - (1 << 64) if bits >> 63 else bits)
    assert execute(AmxState(x, y, z), name, operand).z == bytes(one_by_one.state.z)


def test_wrong_use_is_told_in_a_line() -> None:
    with pytest.raises(ValueError, match="z has 4096 bytes, not 64"):
        AmxState(z=bytes(64))
    with pytest.raises(ValueError, match="x has 512 bytes, not list"):
        AmxState(x=[0] * 512)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no AMX instruction 'fma8' here; there are fma64, fma32, fma16"):
        execute(AmxState(), "fma8", 0)
    with pytest.raises(ValueError, match="64 bits"):
        execute(AmxState(), "fma16", 1 << 64)
    with pytest.raises(ValueError, match="register"):
        Word("fma16", 32)
    assert (
        repr(AmxState()) == "<AmxState not zero in x: 0 of 512 bytes, y: 0 of 512 bytes, z: 0 of 4096 bytes>"
    )


# ---- loads and stores --------------------------------------------------------------------------------------------


def test_loads_and_stores_move_registers() -> None:
    memory = bytes(range(256)) * 2
    state, same = move(AmxState(), memory, "ldx", Transfer(3, 7))
    assert state.x[448:] == memory[3:67]
    assert same == memory
    state, _ = move(state, memory, "ldy", Transfer(128, 7, pair=1))
    assert state.y[448:] + state.y[:64] == memory[128:256]
    state, _ = move(state, memory, "ldz", Transfer(1, 63))
    assert state.row(63) == memory[1:65]
    _, after = move(state, bytes(256), "stz", Transfer(128, 63).encode())
    assert after == bytes(128) + memory[1:65] + bytes(64)
    _, after = move(state, bytes(64), "stx", Transfer(0, 7))
    assert after == memory[3:67]


def test_interleaved_moves_are_halves_of_two_rows() -> None:
    words = struct.pack("<16I", *range(16))
    left, _ = move(AmxState(), words, "ldzi", Transfer(0, 4))
    state, _ = move(left, words, "ldzi", Transfer(0, 5))
    assert struct.unpack("<16I", state.row(4)) == (*range(0, 16, 2), *range(0, 16, 2))
    assert struct.unpack("<16I", state.row(5)) == (*range(1, 16, 2), *range(1, 16, 2))
    assert not any(left.row(4)[32:])
    assert move(state, bytes(64), "stzi", Transfer(0, 5))[1] == words


def test_transfers_are_their_fields_and_wrong_ones_are_refused() -> None:
    transfer = Transfer(pointer=0x1234, register=5, pair=1)
    assert transfer.encode() == 1 << 62 | 5 << 56 | 0x1234
    assert Transfer.decode(transfer.encode() | 1 << 63) == transfer
    with pytest.raises(ValueError, match="no load or store 'ldq'"):
        move(AmxState(), bytes(64), "ldq", 0)
    with pytest.raises(ValueError, match="of a memory of 0x40"):
        move(AmxState(), bytes(64), "ldx", Transfer(1))
    with pytest.raises(ValueError, match="multiple of 128"):
        move(AmxState(), bytes(512), "ldx", Transfer(64, pair=1))
    with pytest.raises(ValueError, match="register has 6 bits"):
        Transfer(register=64)


def test_the_worked_example_is_the_product_that_matmul_makes(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "apple_amx.py"
    runpy.run_path(str(example), run_name="__main__")
    said = capsys.readouterr().out
    assert "fma16 x3" in said
    assert said.count("1024 of 1024 elements as matmul has them") == 2


# ---- the other instructions ------------------------------------------------------------------------------------


def random_state(seed: int) -> AmxState:
    rng = np.random.default_rng(seed)
    return AmxState(*(rng.integers(0, 256, size, np.uint8).tobytes() for size in (512, 512, 4096)))


@pytest.mark.parametrize("name", list(tables.FIELDS))
def test_operands_are_their_fields(name: str) -> None:
    for field, (low, width) in tables.FIELDS[name].items():
        assert tables.encode(name, **{field: (1 << width) - 1}) == ((1 << width) - 1) << low
        assert tables.decode(name, 1 << low)[field] == 1
        with pytest.raises(ValueError, match=f"{field} of {name} has {width} bits"):
            tables.encode(name, **{field: 1 << width})
    with pytest.raises(ValueError, match="no field 'nothing'"):
        tables.encode(name, nothing=1)


@pytest.mark.parametrize("name", ["vecfp", "matfp", "vecint", "matint", "mac16", "extrh", "extrv", "genlut"])
@pytest.mark.parametrize("generation", [1, 2, 3, 4])
def test_bits_that_are_no_field_are_ignored(name: str, generation: int) -> None:
    state, rng = random_state(0), np.random.default_rng(generation)
    used = sum({1 << bit for low, width in tables.FIELDS[name].values() for bit in range(low, low + width)})
    for operand in rng.integers(0, 1 << 64, 20, dtype=np.uint64).tolist():
        assert execute(state, name, operand, generation) == execute(state, name, operand & used, generation)


def test_fms_is_fma_of_the_other_sign_and_minus_zero_of_nothing() -> None:
    x, y, z = (codes("f", *[value] * 16) for value in (3.0, 5.0, 7.0))
    state = AmxState(pool(x), pool(y), z + bytes(4096 - 64))
    for skips, expected in (
        ("", -8.0),
        ("z", -15.0),
        ("y", 4.0),
        ("yz", -3.0),
        ("x", 2.0),
        ("xz", -5.0),
        ("xy", 7.0),
    ):
        operand = AmxOperand(vector=1, **{f"skip_{name}": 1 for name in skips})
        assert struct.unpack("<16f", execute(state, "fms32", operand).row(0)) == (expected,) * 16
    nothing = execute(state, "fms32", AmxOperand(vector=1, skip_x=1, skip_y=1, skip_z=1))
    assert nothing.row(0) == codes("I", *[0x80000000] * 16)
    nan = AmxState(pool(codes("I", *[0x7F800001] * 16)))
    assert execute(nan, "fms32", AmxOperand(vector=1, skip_y=1, skip_z=1)).row(0) == codes(
        "I", *[0xFF800001] * 16
    )


@pytest.mark.parametrize(
    ("alu", "expected"), [(0, 3 - 14), (1, 3 + 14), (4, 0), (5, -2), (7, 3), (10, -14), (11, 1), (12, 10)]
)
def test_vecfp_of_bf16(alu: int, expected: float) -> None:
    x, y, z = (struct.pack("<f", value)[2:] * 32 for value in (-2.0, 7.0, 3.0))
    state = AmxState(pool(x), pool(y), z + bytes(4096 - 64))
    after = execute(state, "vecfp", tables.encode("vecfp", alu=alu), generation=2)
    assert after.row(0) == struct.pack("<f", expected)[2:] * 32
    if alu >= 10:
        assert execute(state, "vecfp", tables.encode("vecfp", alu=alu), generation=1) == state


def test_integers_of_one_lane() -> None:
    state = AmxState(pool(codes("h", *[-300] * 32)), pool(codes("h", *[200] * 32)))
    signs = {"x_signed": 1, "y_signed": 1}
    wide = execute(state, "vecint", tables.encode("vecint", width=3, shift=4, **signs))
    assert struct.unpack("<16i", wide.row(1)) == (-60000 >> 4,) * 16
    saturated = execute(wide, "vecint", tables.encode("vecint", alu=4, width=3, saturate=1, z_signed=1))
    assert struct.unpack("<16i", saturated.row(0)) == (0,) * 16
    narrow = execute(state, "mac16", tables.encode("mac16", x_i8=1, z_i32=1))
    assert struct.unpack("<16i", narrow.row(5)) == (-44 * 200,) * 16  # −300 modulo 256
    counted = execute(state, "matint", tables.encode("matint", alu=9, z_row=1))
    assert struct.unpack("<32h", counted.row(63)) == (6,) * 32  # bits of −300 and 200 that are the same


def test_registers_and_tables_are_moved() -> None:
    state = random_state(3)
    assert (
        execute(state, "extrh", tables.encode("extrh", between=1, x_register=2, y_register=5)).x[128:192]
        == state.y[320:384]
    )
    assert execute(state, "extrh", tables.encode("extrh", z_place=9)).x[:64] == state.row(9)
    column = execute(state, "extrv", tables.encode("extrv", narrow_width=1, z_place=6)).y[:64]
    assert column == b"".join(state.row(4 * cell + 2)[4:8] for cell in range(16))
    table = codes("i", *range(0, 160, 10))
    found = execute(AmxState(pool(codes("i", *[25] * 16)), pool(table)), "genlut",
                    tables.encode("genlut", mode=3, table_y=1, to_y=1, register=7))  # fmt: skip
    assert found.y[448:] == b"\x22" * 8 + bytes(56)
    looked = execute(
        found, "genlut", tables.encode("genlut", mode=11, from_y=1, offset=448, table_y=1, to_z=1, row=63)
    )
    assert struct.unpack("<16i", looked.row(63)) == (20,) * 16
    assert execute(state, "set", 0) == execute(state, "clr", 0) == AmxState()
    with pytest.raises(ValueError, match="a generation is 1 to 4"):
        execute(state, "genlut", 0, generation=5)
