"""Answers given before: the same question of the same models, asked of the same source, is not worked out again.

An answer is kept as what was printed of it, in a file of the user's cache folder, beside the store of evidence.  It is
given again only if the source of this package is the same to the letter, what was left open then had as much time as
it has now, and every obligation that it rests on is still in the store of evidence, which nothing contradicts.  Files
are part of a question by their names and contents.

Answers to the questions of the README come with the package (`tools/shipped_answers.py`).  They are given while the
models and the source of both encodings are the same, and settle nothing that was left open; a witness is run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from mmaformal.display import fitting, width_to_fit
from mmaformal.identity import identity
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer
    from mmaformal.solver.evidence import EvidenceStore
    from mmaformal.witness import Witness

#: The folder beside the store of evidence, and how many answers it holds: the oldest make room.
FOLDER, MOST = "answers", 1000

#: Files of the package, outside `encodings`, that models are made of.
_OF_MODELS = ("formats.py", "rounding.py", "losses.py", "spec.py", "instruction.py")

#: The columns of the narrower of the two texts that are kept.
_NARROW = 80

#: Answers that come with the package (`tools/shipped_answers.py`), by their keys.
SHIPPED = Path(__file__).with_name("shipped_answers.json")

#: Whether answers are kept and given again at all; tests ask afresh.
enabled = True


class Recordable(Protocol):
    """An answer that can be kept, or a search's finding; `str` is its text, and `verbose()`, if it has one, all."""

    def to_json(self) -> dict[str, object]: ...


AnswerT = TypeVar("AnswerT", bound=Recordable)


@dataclass(frozen=True)
class Recalled:
    """An answer that was given before; it reads like that, and says when."""

    text: str
    whole: str  #: `verbose()`
    narrow: str  #: the text for a screen of 80 columns, whose tables are folded to that
    narrow_whole: str
    brief: str  #: what it found, in a line
    json: dict[str, object]
    key: str  #: of the question, so that it stands in no other's place
    timeout: float  #: seconds that it had
    date: str  #: when it was asked, ISO 8601
    origin: str = "remembered"  #: or `shipped` with the package
    digest: str = ""  #: of what is shipped: `record_digest`

    def __str__(self) -> str:
        return self._dated(_fitting(self.text, self.narrow))

    @property
    def verdict(self) -> str:
        """`different`, `equal`, `holds`, `fails` or `unknown`, if it is of these."""
        return str(self.json.get("answer", ""))

    @property
    def when(self) -> str:
        """The day on which it was asked, and that it was not asked again."""
        return " ".join([f"on {self.date[:10]},", self.origin, self.digest[:8]]).rstrip()

    def verbose(self) -> str:
        return self._dated(_fitting(self.whole, self.narrow_whole))

    def to_json(self) -> dict[str, object]:
        told = {**self.json, "asked": self.date, "origin": self.origin}
        return {**told, "digest": self.digest} if self.digest else told

    def _dated(self, text: str) -> str:
        """Seconds are those of the day on which it was asked; an answer without seconds has the day alone."""
        dated, count = re.subn(r"\((\d+\.\d s)\)$", rf"(\1 {self.when})", text, count=1, flags=re.MULTILINE)
        first, newline, rest = text.partition("\n")
        return dated if count else f"{first}  ({self.when}){newline}{rest}"


def _fitting(text: str, narrow: str) -> str:
    """The text, or the narrow one where the screen does not hold it."""
    width = width_to_fit()
    return text if width is None or max(map(len, text.split("\n"))) <= width else narrow


def seconds(answer: Answer | Recalled) -> float:
    """How long it took, on the day on which it was asked."""
    return float(str(answer.json["seconds"])) if isinstance(answer, Recalled) else answer.seconds


def brief(answer: Recordable | Recalled) -> str:
    """Say in a line what an answer found: numbers, a witness, or why it is not settled."""
    if isinstance(answer, Recalled):
        return answer.brief
    if numbers := ", ".join(number.text for number in getattr(answer, "numbers", ())):
        return numbers
    summary = getattr(getattr(answer, "witness", None), "summary", None)
    return str(summary or getattr(answer, "why", ""))


class RecallKey:
    """A question as a key: the same text for the same question, and no other."""

    def __init__(self, kind: str, instructions: tuple[Instruction, ...], *words: str) -> None:
        self.instructions = instructions
        self.key = self.shipped_key = ""
        try:
            models = [f"{each.label} {each.m}×{each.n} {identity(each.spec)}" for each in instructions]
        except TypeError:  # a parameter of no plain data: nothing is kept of it
            return
        self.key, self.shipped_key = (
            hashlib.sha256("\n".join([of, kind, *models, *words]).encode()).hexdigest()
            for of in (source_digest(), source_of_models())
        )

    def ask(
        self,
        store: EvidenceStore | None,
        timeout: float,
        work: Callable[[], AnswerT],
        *,
        whole: Callable[[AnswerT], object] | None = None,
        improvable: bool = False,
        shipped: bool = False,
    ) -> AnswerT | Recalled:
        """Return the answer of before, if it still stands, or that of `work`, which is kept.

        whole: whether an answer is one to keep (default: any but Unknown).  improvable: more time may find more, so an
        answer that had less does not stand.  shipped: one that comes with the package will do; it has no obligations.
        """
        known = self.recall(store, timeout, improvable)
        if known is None and shipped:
            known = self.shipped(store)
        if known is not None:
            return known
        answer = work()
        if whole is None or whole(answer):
            self.remember(store, answer, timeout)
        return answer

    def recall(
        self, store: EvidenceStore | None, timeout: float, improvable: bool = False
    ) -> Recalled | None:
        """The answer of before, if it still stands."""
        path = self._path(store)
        if path is None or store is None:
            return None
        try:
            found = Recalled(**json.loads(path.read_text(encoding="utf-8")))
            settled = _is_settled(found.text) and not improvable
            stands = found.key == self.key and (settled or found.timeout >= timeout)
            stands = stands and _is_shown(found.json.get("witness"), self.instructions)
            return found if stands and _are_proved(obligations_of(found.json), store) else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def shipped(self, store: EvidenceStore | None) -> Recalled | None:
        """Return the answer that comes with the package.

        None if there is none, if it is not to the letter what was shipped, or its witness is none any more.
        """
        if not enabled or store is None or not self.shipped_key:
            return None
        try:
            found = json.loads(SHIPPED.read_text(encoding="utf-8")).get(self.shipped_key)
            if found is None or found["digest"] != record_digest(self.shipped_key, found):
                return None
            answer = Recalled(**found, key=self.shipped_key, origin="shipped")
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return answer if _is_shown(answer.json.get("witness"), self.instructions) else None

    def remember(self, store: EvidenceStore | None, answer: Recordable, timeout: float) -> None:
        """Keep an answer, unless it is Unknown or cannot be written."""
        path = self._path(store)
        if path is None or answer.to_json().get("answer") == "unknown":
            return
        record = {**answers_recorded(answer, timeout), "key": self.key}
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, suffix=".new", delete=False, encoding="utf-8"
            ) as file:
                json.dump(record, file)
            os.replace(file.name, path)
            _make_room(path.parent)

    def _path(self, store: EvidenceStore | None) -> Path | None:
        if not enabled or store is None or not self.key:
            return None
        return store.path.parent / FOLDER / f"{self.key}.json"


def answers_recorded(answer: Recordable, timeout: float) -> dict[str, object]:
    """Return what is kept of an answer that had so many seconds: the fields of `Recalled`, but for its key."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    verbose: Callable[[], str] = getattr(answer, "verbose", answer.__str__)
    with fitting(None):  # another terminal may have another width
        texts = {"text": str(answer), "whole": verbose(), "brief": brief(answer)}
    with fitting(_NARROW):
        texts |= {"narrow": str(answer), "narrow_whole": verbose()}
    return {**texts, "json": answer.to_json(), "timeout": timeout, "date": date}


def record_digest(key: str, record: Mapping[str, object]) -> str:
    """Return the SHA-256 of a question's key and the record that is shipped for it, but for its own digest."""
    told = {name: each for name, each in record.items() if name != "digest"}
    return hashlib.sha256(json.dumps([key, told], sort_keys=True).encode()).hexdigest()


def _is_settled(text: str) -> bool:
    """Whether nothing was left open: more time would find nothing smaller."""
    return "best found (" not in text and "not made smaller" not in text


def _is_shown(told: object, instructions: tuple[Instruction, ...]) -> bool:
    """Whether a witness that tells two models apart still does, both being run on it again; True of all else."""
    from mmaformal.witness import WitnessError

    try:
        witness = witness_told(told, instructions)
    except WitnessError:
        return False
    return witness is None or witness.to_json() == told


def witness_told(told: object, instructions: tuple[Instruction, ...]) -> Witness | None:
    """Return the witness that plain values tell, both models being run on it again; None if they tell another thing.

    Raises WitnessError where the models do not differ on it.
    """
    models = told.get("models") if isinstance(told, dict) else None
    labels = [f"{each['architecture']} {each['instruction']}" for each in models or ()]
    if not isinstance(told, dict) or len(labels) != 2 or labels != [each.label for each in instructions]:
        return None
    from mmaformal.witness import Witness

    a, b, scale_a, scale_b = (
        [int(x, 16) for x in told.get(name, ())] for name in ("a", "b", "scale_a", "scale_b")
    )
    x, y = instructions
    return Witness.of(x, y, a, b, int(told["c"], 16), scale_a, scale_b)


def obligations_of(told: object) -> Iterator[str]:
    """The scripts, by their digests, that an answer rests on."""
    if isinstance(told, dict):
        if "sha256" in told:
            yield told["sha256"]
        if isinstance(listed := told.get("obligations"), list):
            yield from (each for each in listed if isinstance(each, str))
        for value in told.values():
            yield from obligations_of(value)
    elif isinstance(told, list):
        for value in told:
            yield from obligations_of(value)


def _are_proved(digests: Iterator[str], store: EvidenceStore) -> bool:
    from mmaformal.solver.evidence import EvidenceError

    try:
        return all(store.proof(digest) is not None for digest in digests)
    except EvidenceError:
        return False


def _make_room(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - MOST, 0)]:
        path.unlink(missing_ok=True)


def contents(paths: Iterable[Path]) -> tuple[str, ...]:
    """Files, and those of folders, by their names and digests, as words of a question; what cannot be read has none."""
    words = []
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            with contextlib.suppress(OSError):
                words.append(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}")
    return tuple(words)


def source_files() -> list[Path]:
    """Every source file of this package, wherever it is installed."""
    roots = {Path(__file__).parents[1]}
    for name in ("mmaformal.queries", "mmaformal.encodings"):
        spec = find_spec(name)
        for place in (spec and spec.submodule_search_locations) or ():
            links = (each for each in Path(place).iterdir() if each.is_dir())  # which `rglob` does not follow
            roots |= {Path(place).resolve(), *(each.resolve() for each in links)}
    return sorted({path.resolve() for root in roots for path in root.rglob("*.py")})


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Return the digest of all of them: where it is another, so may be the answers."""
    return _digest_of(source_files())


def files_of_models() -> list[Path]:
    """Return the source files that give a model its meaning: both encodings, formats and roundings; no kernels."""
    top = [Path(__file__).parents[1].resolve() / name for name in _OF_MODELS]
    return [
        each
        for each in source_files()
        if each in top or ("encodings" in each.parts and "kernel" not in (each.stem, each.parent.name))
    ]


@lru_cache(maxsize=1)
def source_of_models() -> str:
    """Return the digest of the source that gives a model its meaning."""
    return _digest_of(files_of_models())


def _digest_of(files: Iterable[Path]) -> str:
    read = hashlib.sha256()
    for path in files:
        read.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return read.hexdigest()
