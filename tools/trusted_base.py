"""Count what has to be right for a `Proof` to mean what it says: by file, with a reason for each.

    python tools/trusted_base.py            print the tables
    python tools/trusted_base.py --write    write them into docs/trusted-base.md

The files of `BASE` are listed by hand.  Those that state conclusions, name rules or say `Holds` are found in the
sources: none can be left out.  Lines are lines of code: no comments, docstrings or blank lines.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "trusted-base.md"
BEGIN, END = "<!-- begin of what tools/trusted_base.py writes -->", "<!-- end of it -->"


@dataclass(frozen=True)
class Part:
    """A file, a folder or a pattern of files, and why it has to be right."""

    path: str  #: below the repository
    reason: str

    @property
    def lines(self) -> int:
        return sum(map(lines_of, self.files))

    @property
    def files(self) -> list[Path]:
        """The file, those of the folder, or those that the pattern is of."""
        place = ROOT / self.path
        if "*" in self.path:
            return [
                each for each in sorted(ROOT.glob(self.path)) if each.parent.name not in ("executable", "smt")
            ]
        return sorted(place.rglob("*.py")) if place.is_dir() else [place]


BASE: dict[str, tuple[Part, ...]] = {
    "The kernel": (
        Part(
            "mmaformal/proof/kernel.py", "lemmas of inferences, the composition, and who may make a `Proof`"
        ),
        Part(
            "mmaformal/proof/claims.py",
            "what claims, inferences and a conclusion are in propositions, and what a claim is given under",
        ),
        Part(
            "mmaformal/proof/composition.py",
            "claims that are proved as they are made: the class `Composing` alone",
        ),
        Part(
            "mmaformal/proof/rules.py", "the rules Instance, Successor and Ascent, and their side conditions"
        ),
        Part(
            "mmaformal/proof/lemmas.py",
            "the class `Argument` alone: ranges of lanes are proved by their trace",
        ),
        Part("mmaformal/lanes", "what 64-bit lanes compute, as terms, with a rule for each operation"),
    ),
    "Questions and answers": (
        Part(
            "mmaformal/solver/asking.py",
            "what is refuted, constants in the place of terms, what an `unsat` counts for",
        ),
        Part("mmaformal/solver/terms.py", "the constants of a term; constants that it does not have"),
        Part(
            "mmaformal/solver/script.py", "the script says what the terms say, and has one thing of each name"
        ),
        Part("mmaformal/solver/answers.py", "obligations are made by the asker, proofs by the kernel"),
        Part(
            "mmaformal/solver/evidence.py",
            "what is known of a script is of that script, and not contradicted",
        ),
        Part("mmaformal/solver/portfolio.py", "an answer is to the script that was asked"),
        Part("mmaformal/solver/worker.py", "the solvers are given the script, and `unsat` is what they said"),
        Part("mmaformal/solver/splitting.py", "of `--confirm` alone: cases are all there are"),
        Part("mmaformal/solver/confirming.py", "of `--confirm` alone: every case is settled"),
        Part(
            "mmaformal/campaign.py",
            "which lemmas are those of which instruction; what was answered in other processes",
        ),
    ),
    "Certificates, in the place of solvers and of the kernel": (
        Part(
            "mmaformal/certificates/check.py",
            "derivations and arguments are followed step by step",
        ),
        Part(
            "mmaformal/certificates/fast_check.py",
            "derivations, compiled; what it does not accept goes to `check.py`",
        ),
        Part(
            "mmaformal/certificates/blaster.py",
            "a script's clauses can be met if and only if its assertions can",
        ),
        Part(
            "mmaformal/certificates/equalities.py",
            "a constant that is asserted to equal a term may be defined as it",
        ),
        Part("mmaformal/certificates/expressions.py", "SMT-LIB 2 is read"),
        Part("mmaformal/certificates/circuits.py", "gates and their clauses"),
        Part("mmaformal/certificates/premises.py", "an assignment is of the premises' clauses"),
        Part("mmaformal/proof/written.py", "`statement_of` alone: what a theorem states, as text"),
        Part("queries/witnesses.py", "a witness is of the premises that a theorem has, and runs as it tells"),
        Part(
            "queries/check_certificate.py",
            "a statement's proof rests on lemmas that were checked alone, and which need to be",
        ),
    ),
    "What both encodings are": (
        Part("mmaformal/cases/encodings.py", "traces of both encodings on the same inputs"),
        Part("mmaformal/cases/inputs.py", "the constants that stand for the inputs"),
        Part("mmaformal/cases/codes.py", "which codes are NaNs, infinities, zeros"),
        Part("mmaformal/cases/relations.py", "two runs on related inputs: what properties say"),
        Part(
            "mmaformal/cases/out_of_order.py", "the order of codes, for monotonicity and the rule Successor"
        ),
        Part("mmaformal/proof/encoding_links.py", "`link_code` alone: what equality of the encodings is"),
        Part(
            "mmaformal/proof/definitions.py",
            "what it is that a code is a number rounded, as a claim about terms",
        ),
        Part("mmaformal/formats.py", "the formats"),
        Part("mmaformal/rounding.py", "the specification: how numbers are rounded"),
        Part("mmaformal/spec.py", "the specification: types, parameters, products, scales"),
        Part("mmaformal/instruction.py", "which specification a name, `--k` and `--replace` mean"),
        Part("mmaformal/limits.py", "the specification: what its numbers may be"),
        Part("encodings/*/__init__.py", "the specification: which algorithm, with which parameters"),
        Part("encodings/smt", "the SMT encoding, what algorithms share: properties are statements about it"),
        Part("encodings/*/smt.py", "the same, of each algorithm"),
        Part("encodings/executable", "the executable encoding, proved equal; `blocks.where` knows its lanes"),
        Part("encodings/*/executable.py", "the same, of each algorithm"),
    ),
    "What is counted or followed in Python": (
        Part(
            "mmaformal/facts/chains.py",
            "the loops of both encodings, followed on tokens (induction over steps)",
        ),
        Part("mmaformal/analysis/units.py", "constants of a unit's bound, beside those of the lemmas"),
        Part("mmaformal/studies/emulation/programs.py", "constants of a program's bound"),
        Part("mmaformal/analysis/arithmetic.py", "the numbers of a format, as fractions"),
        Part("queries/constraints.py", "what `where` allows"),
    ),
    "Searches: nothing is found, so nothing is there (`Equal`, `Holds`, proved minimal)": (
        Part("mmaformal/cases/questions.py", "a search asks of all inputs but those that it names"),
        Part("mmaformal/cases/smallest.py", "each smaller size is asked for, and each place of products"),
        Part(
            "mmaformal/cases/symmetries.py",
            "which cases stand for others, by laws that are proved or as the question says",
        ),
        Part("mmaformal/facts/laws.py", "that the lemmas of a law make the cases alike"),
    ),
    "What is compared": (
        Part("queries/comparing.py", "`Agreement` alone: which d count as the same, for which inputs"),
        Part("queries/standard_units.py", "`gives_none` alone: that no unit of a standard gives a result"),
        Part("mmaformal/theory/numbers.py", "`LargerProduct` alone: what monotonicity in a product says"),
    ),
    "Sign-off of a design": (
        Part("mmaformal/hardware/yosys.py", "what yosys is asked to do with the Verilog; yosys itself"),
        Part("mmaformal/hardware/engines.py", "how its builds are asked to read; slang"),
        Part("mmaformal/hardware/registers.py", "registers and clock gates as inputs and outputs"),
        Part("mmaformal/hardware/sequential.py", "pipelines folded, designs with feedback unrolled"),
        Part("mmaformal/hardware/rebuild.py", "terms with values in them"),
        Part("mmaformal/hardware/ports.py", "which bits of which port are what"),
        Part("mmaformal/hardware/designs.py", "a design over the codes of operands"),
        Part(
            "mmaformal/hardware/rtlil.py",
            "that each bit of a design has one driver, which yosys takes for granted",
        ),
        Part("mmaformal/hardware/read_btor2.py", "BTOR2 as terms"),
        Part("mmaformal/hardware/undefined.py", "undefined signals are free"),
        Part("mmaformal/hardware/module.py", "which port is which input"),
    ),
    "Sign-off of a program": (
        Part("mmaformal/hardware/programs", "what clang's LLVM, and each of its instructions, is as terms"),
        Part("mmaformal/hardware/tracing", "what Python, NumPy and torch compute, as terms"),
    ),
}

#: Files that a certified statement rests on where each of its theorems is argued in a file: these and the encodings.
ARGUED = (
    *(part.path for part in BASE["Certificates, in the place of solvers and of the kernel"]),
    "mmaformal/lanes",
    "mmaformal/solver/script.py",
    "mmaformal/solver/terms.py",
)

#: Names that only modules use that make or name proofs, by where each is imported from.
_MADE = {
    "mmaformal.proof.kernel": {"prove", "direct", "gathered", "together", "by_rule"},
    "mmaformal.proof.composition": {"Rule"},
    "mmaformal.solver.answers": {"made_by"},
    "mmaformal.solver.asking": {"obligation", "restated"},
}
_SAID = {"Holds": "says `Holds`", "Equal": "says `Equal`"}
#: One of these words is in the text of every such module: the others need not be parsed.
_HINTS = re.compile(
    r"\b(prove|direct|gathered|together|by_rule|Rule|made_by|obligation|restated|Holds|Equal|conclude|conclude_all"
    r"|theorem|rests_on)\b"
)
_CONCLUDES = {"conclude", "conclude_all", "theorem"}
_RULES = {"by_rule", "rests_on", "Rule"}


@functools.cache
def lines_of(file: Path) -> int:
    """Its lines of code."""
    text = file.read_text(encoding="utf-8")
    tree, left = ast.parse(text), set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            left |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    said = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in said if i not in left and line.strip() and not line.lstrip().startswith("#"))


def uses(text: str) -> list[str]:
    """Return what a module does with proofs, each a few words; empty if no proof needs to believe anything of it."""
    if not _HINTS.search(text):
        return []
    tree, found = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            made = {alias.name for alias in node.names} & _MADE.get(node.module or "", set())
            found |= {"names a rule" if name in _RULES else "makes proofs" for name in made}
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in _SAID:
                found.add(_SAID[name])
            if isinstance(called, ast.Attribute) and called.attr in _CONCLUDES:
                found.add("states a conclusion")
            if isinstance(called, ast.Attribute) and called.attr in _RULES:
                found.add("names a rule")
    return sorted(found)


def sources() -> Iterator[Path]:
    for folder in ("mmaformal", "queries"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if "encodings" not in file.relative_to(ROOT).parts[:2]:
                yield file
    yield from sorted(ROOT.glob("encodings/*/proofs/**/*.py"))


@functools.cache
def stating() -> tuple[Part, ...]:
    """The modules that are not in `BASE`, but state conclusions, name rules, or make proofs and answers of them."""
    known = {part.path for parts in BASE.values() for part in parts}
    found = []
    for file in sources():
        path = file.relative_to(ROOT).as_posix()
        if path not in known and (done := uses(file.read_text(encoding="utf-8"))):
            found.append(Part(path, ", ".join(done)))
    return tuple(found)


STATING = "Statements"


def parts() -> dict[str, tuple[Part, ...]]:
    return {**BASE, STATING: stating()}


def tables() -> str:
    """The tables, as Markdown."""
    groups = parts()
    total = {name: sum(part.lines for part in group) for name, group in groups.items()}
    lines = ["| what | files and folders | lines of code |", "|---|---|---|"]
    lines += [f"| {name} | {len(group)} | {total[name]} |" for name, group in groups.items()]
    lines += [f"| all | {sum(map(len, groups.values()))} | {sum(total.values())} |", ""]
    names = ", ".join(f"`{path}`" for path in ARGUED)
    lines += [f"What `check-certificate` says rests on {argued()} lines besides the encodings: {names}.", ""]
    for name, group in groups.items():
        lines += [f"**{name}**", "", "| file | lines | why |", "|---|---|---|"]
        lines += [f"| `{part.path}` | {part.lines} | {part.reason} |" for part in group]
        lines.append("")
    return "\n".join(lines)


def argued() -> int:
    """Lines that a statement with certificates rests on, without the encodings and the statement itself."""
    return sum(part.lines for group in BASE.values() for part in group if part.path in ARGUED)


def written(text: str) -> str:
    """The part of a document that this writes."""
    return text.partition(BEGIN)[2].partition(END)[0]


def listed(text: str) -> dict[str, tuple[int, str]]:
    """Return the lines and the reason of each file in a document's tables."""
    rows = re.findall(r"^\| `([^`]+)` \| (\d+) \| (.*) \|$", written(text), re.MULTILINE)
    return {path: (int(lines), reason) for path, lines, reason in rows}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the tables into docs/trusted-base.md")
    if not parser.parse_args(argv).write:
        print(tables())
        return 0
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{DOCUMENT} has no place for the tables: {BEGIN}", file=sys.stderr)
        return 1
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{tables()}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
