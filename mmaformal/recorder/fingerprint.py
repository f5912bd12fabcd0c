"""A program that puts a few inputs to a unit and prints which of some models it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import Template

from mmaformal.cases.inputs import Codes
from mmaformal.instruction import Instruction
from mmaformal.recorder.program import RecorderError, RecorderProgram
from mmaformal.recorder.rows import RowLayout
from mmaformal.recorder.units import program_of

#: Where the programs that copy rows have their own.
_MAIN = "int main(void) {"

_FINGERPRINT = Template("""\
// Each input in pieces, as many products as one instruction takes; the result of one is the c of the next.
static struct Row pieces[$cases][$issues] = {
$pieces
};

// What each model gives for each input.
static const struct { const char *name; uint64_t d[$cases]; } models[] = {
$models
};

int main(void) {
    char device[1024] = "";
    const char *wrong = prepare(device, sizeof device);
    int named = 0;
    if (wrong) return failed(wrong);
    for (int i = 0; i < $issues; ++i) {
        struct Row rows[$cases];
        for (int n = 0; n < $cases; ++n) {
            if (i) pieces[n][i].c = pieces[n][i - 1].d;
            rows[n] = pieces[n][i];
        }
        if ((wrong = run(rows, $cases))) return failed(wrong);
        for (int n = 0; n < $cases; ++n) pieces[n][i].d = rows[n].d;
    }
    for (unsigned m = 0; m < sizeof models / sizeof *models; ++m) {
        int same = 1;
        for (int n = 0; n < $cases; ++n) same &= (uint64_t)pieces[n][$issues - 1].d == models[m].d[n];
        if (same) printf("%s\\n", models[m].name);
        named |= same;
    }
    if (!named) {
        printf("none of the models:");
        for (int n = 0; n < $cases; ++n) printf(" %#llx", (unsigned long long)pieces[n][$issues - 1].d);
        printf("\\n");
    }
    return !named;
}
""")


def fingerprint_program(
    instruction: Instruction,
    cases: Sequence[Codes],
    models: Sequence[tuple[Sequence[str], Sequence[int]]],
    compiler: str | None = None,
    *,
    here: bool = False,
) -> RecorderProgram:
    """Return a program for an instruction whose K divides the cases'; `models`: the names of each, and what it gives.

    Exit status of the program: 0 if the unit is one of the models, 1 if not, 2 if there is no such unit.
    Raises RecorderError where no program can be written, or if there is no case.
    """
    if not cases:
        raise RecorderError("no input tells these apart: there is nothing to run")
    k = len(cases[0].a)
    if k % instruction.k:
        raise RecorderError(f"{instruction.label} takes {instruction.k} products, which does not divide {k}")
    made = program_of(instruction, compiler, here=here)
    head, main, _ = made.source.partition(_MAIN)
    assert main, "the programs of all targets end in one main"
    issues = k // instruction.k
    text = _FINGERPRINT.substitute(
        cases=len(cases),
        issues=issues,
        pieces=",\n".join(
            f"    {{{', '.join(_piece(instruction, x, i) for i in range(issues))}}}" for x in cases
        ),
        models=",\n".join(
            f'    {{"{", ".join(names)}", {{{", ".join(f"{d:#x}u" if d < 1 << 32 else f"{d:#x}ull" for d in gives)}}}}}'
            for names, gives in models
        ),
    )
    return replace(made, source=head + text)


def _piece(instruction: Instruction, case: Codes, issue: int) -> str:
    """The products of one instruction, as the row that it takes."""
    values: list[str] = []
    for field in RowLayout(instruction).fields:
        if not field.count:
            values.append(f"{case.c if field.name == 'c' else 0:#x}")
            continue
        side: tuple[int, ...] = getattr(case, field.name)
        values.append(f"{{{', '.join(map(hex, side[issue * field.count : (issue + 1) * field.count]))}}}")
    return f"{{{', '.join(values)}}}"
