"""Proofs that a reader's browser checks again: a folder of claims with the scripts of their obligations.

`mmaformal atlas prove` fills the folder, claim by claim; what is there is not asked again.  A script is a file of its
own, known by its SHA-256, since many claims rest on the same ones.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from mmaformal.display import ShortRepr, counted
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.queries.properties import prove
from mmaformal.site.addresses import script_address
from mmaformal.site.html import Markup, page, page_table
from mmaformal.solver.answers import Different, Equal, Holds

#: Seconds that a reader's z3 has for one obligation, and the longest script that it is given.
BROWSER_SECONDS, BROWSER_BYTES = 20, 400_000


@dataclass(frozen=True, repr=False)
class ShownObligation(ShortRepr):
    """An obligation as a page shows it."""

    sha256: str
    statement: str
    solver: str
    seconds: float
    size: int  #: bytes of its script


@dataclass(frozen=True, repr=False)
class SiteProof(ShortRepr):
    """A property of an instruction that was proved."""

    label: str
    property: str
    question: str
    rules: tuple[str, ...]
    lemmas: tuple[ShownObligation, ...]

    def to_json(self) -> dict[str, object]:
        lemmas = [[x.sha256, x.statement, x.solver, x.seconds, x.size] for x in self.lemmas]
        named = {"label": self.label, "property": self.property, "question": self.question}
        return {**named, "rules": list(self.rules), "lemmas": lemmas}

    @staticmethod
    def from_json(line: str) -> SiteProof:
        """Read what `to_json` gave.  Raises ValueError, KeyError and TypeError for anything else."""
        told = json.loads(line)
        lemmas = tuple(ShownObligation(*each) for each in told["lemmas"])
        return SiteProof(told["label"], told["property"], told["question"], tuple(told["rules"]), lemmas)


class ProofFolder:
    """Claims and scripts in a folder."""

    def __init__(self, path: Path) -> None:
        """Read what is there.  Raises ValueError for a line that is no claim."""
        self.path, self.index = path, path / "claims.jsonl"
        self.claims: dict[tuple[str, str], SiteProof] = {}
        lines = self.index.read_text(encoding="utf-8").splitlines() if self.index.is_file() else []
        for number, line in enumerate(lines, 1):
            try:
                claim = SiteProof.from_json(line)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.index}:{number} is no claim: {error}") from None
            self.claims[claim.label, claim.property] = claim

    def script(self, sha256: str) -> Path:
        """The file of a script."""
        return self.path / script_address(sha256)

    def add(self, label: str, name: str, answer: Holds | Equal | Different) -> SiteProof:
        """Keep a proof: first its scripts, then the claim."""
        lemmas = []
        for each in answer.evidence.obligations:
            data = each.script.encode()
            file = self.script(each.digest)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(data, mtime=0))
            solver = f"{each.solver} {each.version}".strip()
            lemmas.append(
                ShownObligation(each.digest, each.statement, solver, round(each.seconds, 3), len(data))
            )
        rules = () if isinstance(answer, Different) else answer.proof.rules
        claim = SiteProof(label, name, str(answer).partition("  (")[0], rules, tuple(lemmas))
        with self.index.open("a", encoding="utf-8") as file_:
            file_.write(json.dumps(claim.to_json(), ensure_ascii=False) + "\n")
        self.claims[label, name] = claim
        return claim


@dataclass(frozen=True, repr=False)
class Filled(ShortRepr):
    """A folder that was filled: how many claims it has, and which ones are left out, with the reasons."""

    folder: ProofFolder
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """A line, and one for each claim that is left out."""
        first = f"{self.folder.path}: {counted(len(self.folder.claims), 'proof')}"
        return "\n".join([first, *(f"  {' '.join(key)}: {why}" for key, why in self.left_out.items())])


def fill(
    folder: ProofFolder,
    instructions: Iterable[Instruction],
    names: Iterable[str],
    told: Callable[[str], object],
    *,
    timeout: float,
    memory: int,
) -> Filled:
    """Prove properties of instructions that the folder has no proof of yet, each within a time."""
    left_out: dict[tuple[str, str], str] = {}
    properties = list(names)
    for i in instructions:
        for name in properties:
            if (i.label, name) in folder.claims:
                continue
            answer = prove(name, i, timeout=timeout, memory=memory)
            told(f"{i.label} {name}: {answer.verdict} ({answer.seconds:.1f} s)")
            if isinstance(answer, Holds):
                folder.add(i.label, name, answer)
            else:
                left_out[i.label, name] = getattr(answer, "why", answer.verdict)
    return Filled(folder, left_out)


def pair_claim(slug: str) -> tuple[str, str]:
    """The key of the claim on a pair, of the path of its page."""
    first, _, second = slug.partition("/")
    return f"pair {first}", second


def fill_pair(
    folder: ProofFolder, x: Instruction, y: Instruction, slug: str, *, timeout: float, memory: int
) -> Filled:
    """Prove two instructions equal, or an input the smallest on which they differ, unless the folder has that."""
    key = pair_claim(slug)
    if key in folder.claims:
        return Filled(folder)
    answer = find_difference(x, y, timeout=timeout, memory=memory)
    if not isinstance(answer, (Equal, Different)):
        return Filled(folder, {(f"{x.label} and", y.label): getattr(answer, "why", answer.verdict)})
    folder.add(*key, answer)
    return Filled(folder)


# ---- pages ---------------------------------------------------------------------------------------------------------


def checker(root: str, too_long: int = 0) -> Markup:
    """A button that has a reader's browser ask z3 about the rows of the table below it."""
    left = (
        f" {counted(too_long, 'script')} longer than {BROWSER_BYTES:,} bytes are left out."
        if too_long
        else ""
    )
    return (
        f'<div id="checker" data-root="{root}" data-seconds="{BROWSER_SECONDS}">'
        f"<p>z3, compiled to WebAssembly, can be asked each of these again in this browser: {BROWSER_SECONDS} s for "
        f"each at most, and the answer has to be <code>unsat</code>.{left}</p>"
        '<noscript><p class="wrong">That needs scripts.</p></noscript>'
        '<p><button id="check" hidden>Check them in this browser</button> '
        '<button id="stop" hidden>Stop</button></p><p id="checked" role="status"></p></div>\n'
    )


def proof_page(claim: SiteProof, z3: bool) -> str:
    """A proof: what is proved, by which rules, each obligation, and a button that checks them."""
    long = sum(1 for x in claim.lemmas if x.size > BROWSER_BYTES)
    rows = [
        (
            str(number),
            escape(x.statement),
            escape(x.solver),
            f"{x.seconds:.3f}",
            f'<a href="../../../{script_address(x.sha256)}" data-bytes="{x.size}" data-sha256="{x.sha256}">'
            f"{x.sha256[:12]}…</a>",
            "" if x.size <= BROWSER_BYTES else "too long for a browser",
        )
        for number, x in enumerate(claim.lemmas, 1)
    ]
    rules = "".join(f"<li>by the rule: {escape(each)}</li>" for each in claim.rules)
    body = (
        f"<p>{escape(claim.question)}: {counted(len(claim.lemmas), 'obligation')}, each a statement whose opposite a "
        "solver refuted. That together they give the claim is what the kernel composed; "
        f"<code>mmaformal certify</code> writes that down too.</p>\n<ul>{rules}</ul>\n"
    )
    body += checker("../../../", long) if z3 else "<p>This site was built without z3 for browsers.</p>\n"
    head = ("number", "statement", "solver", "seconds", "SMT-LIB 2", "in this browser")
    body += page_table(head, rows, "obligations")
    pair = claim.label.startswith("pair ")
    title = f"Proof: {claim.question}" if pair else f"{claim.property} of {claim.label}"
    return page(title, body, depth=3, script="check.js" if z3 else "")
