"""A program that reads rows, has a unit compute d of each, and writes them: what those for all kinds of units share."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import IO

from mmaformal.display import ShortRepr
from mmaformal.recorder.rows import MOST_LINE, RowLayout

#: Called with the rows that were fed so far.
RowsFed = Callable[[int], None]


class RecorderError(ValueError):
    """Nothing can be recorded here; one line: what is missing, or what a tool or a program said."""


@dataclass(frozen=True, repr=False)
class RecorderProgram(ShortRepr):
    """The source of a program, and how it is built and run."""

    source: str
    suffix: str  #: of the source file
    compiler: tuple[str, ...]  #: of a shell's words
    flags: tuple[str, ...]
    runner: tuple[str, ...] = ()  #: what runs it, if it does not run by itself

    def build(self, source: str, executable: str) -> list[str]:
        """The command that compiles it."""
        return [*self.compiler, *self.flags, "-o", executable, source]

    def command_line(self, source: str, rows: str, outputs: str) -> str:
        """One line for a shell, that builds the program and runs it."""
        run = shlex.join([*self.runner, "./record"])
        files = f"< {shlex.quote(rows)} > {shlex.quote(outputs)}"
        return f"{shlex.join(self.build(source, 'record'))} && {run} {files}"


#: C, and C++ too.  A target gives `prepare`, which says on what it runs, and `run`; both return what is wrong, or null.
_MAIN = Template("""\
// Rows of dot product-adds ($types) from stdin; the same with d as $label gives it to stdout.
// Written by mmaformal.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
$headers

enum { K = $k, ROWS = $block };

$struct

$unit

static int failed(const char *why) {
    fprintf(stderr, "%s\\n", why);
    return 2;
}

int main(void) {
    static struct Row rows[ROWS];
    char line[$line], device[1024] = "";
    const char *wrong = prepare(device, sizeof device);
    if (wrong) return failed(wrong);
    if (!fgets(line, sizeof line, stdin) || strcmp(line, "$title\\n"))
        return failed("stdin is no file of rows of $label");
    fputs(line, stdout);
    if (!fgets(line, sizeof line, stdin)) return failed("stdin ends before its first row");
    fputs(line, stdout);
    for (char *c = device; *c; ++c)
        if (*c < ' ' || *c == '\\\\') *c = ' ';
    printf("{%s}\\n", device);
    for (size_t n; (n = fread(rows, sizeof *rows, ROWS, stdin)) > 0;) {
        if ((wrong = run(rows, (int)n))) return failed(wrong);
        if (fwrite(rows, sizeof *rows, n, stdout) != n) return failed("the rows cannot be written");
    }
    return fflush(stdout) ? failed("the rows cannot be written") : 0;
}
""")


def program_source(layout: RowLayout, *, headers: str, unit: str, block: int) -> str:
    """The text of a program; `unit` defines `prepare` and `run`, which gets at most `block` rows."""
    return _MAIN.substitute(
        types=layout.instruction.spec.types,
        label=layout.instruction.label,
        title=layout.title,
        headers=headers,
        struct=layout.c_struct,
        unit=unit,
        k=layout.instruction.k,
        block=block,
        line=MOST_LINE,
    )


# ---- building and running ------------------------------------------------------------------------------------


def tool_found(names: Sequence[str]) -> str | None:
    """The first of these tools that is here."""
    return next((name for name in names if shutil.which(name)), None)


def compiler_words(compiler: str) -> tuple[str, ...]:
    """A compiler as it was named, with options.  Raises RecorderError if there is none."""
    words = tuple(shlex.split(compiler))
    if not words or shutil.which(words[0]) is None:
        raise RecorderError(f"no compiler {compiler!r} here")
    return words


def run_program(
    program: RecorderProgram, rows: Iterable[bytes], row_bytes: int, outputs: Path, progress: RowsFed | None
) -> None:
    """Build a program, feed it, and let it write to a file.  Raises RecorderError: what it, or the compiler, says."""
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        source, executable = Path(folder, f"record{program.suffix}"), Path(folder, "record")
        source.write_text(program.source, encoding="utf-8")
        command = program.build(str(source), str(executable))
        built = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if built.returncode:
            raise RecorderError(f"{program.compiler[0]} cannot compile it: {_first_error(built.stderr)}")
        with outputs.open("wb") as out, tempfile.TemporaryFile() as said:
            _feed([*program.runner, str(executable)], rows, row_bytes, (out, said), progress)


def _feed(
    command: list[str],
    rows: Iterable[bytes],
    row_bytes: int,
    files: tuple[IO[bytes], IO[bytes]],
    progress: RowsFed | None,
) -> None:
    out, said = files
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=out, stderr=said, start_new_session=True
    )
    fed = 0
    assert process.stdin is not None
    try:
        try:
            for number, piece in enumerate(rows):
                process.stdin.write(piece)
                fed += len(piece) // row_bytes if number else 0  # the first piece has no rows
                if progress is not None:
                    progress(fed)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has said why
        status = process.wait()
    finally:
        process.kill()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()
    if status:
        said.seek(0)
        words = said.read(1 << 16).decode(errors="replace").strip()
        raise RecorderError(" ".join(words.split())[:600] or f"the program ended with status {status}")


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "it does not say why")[
        :400
    ]
