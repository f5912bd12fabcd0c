"""Answers that come with the package: the questions of README.md and docs/guide.md, worked out beforehand.

    python tools/shipped_answers.py            asks those that are missing, drops those that are asked no more
    python tools/shipped_answers.py --again    asks every one anew; exit status 1 if one has changed

A question is known by its models and the source of both encodings (`RecallKey.shipped_key`): where these change, it is
missing.  An answer that leaves something open is not shipped.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mmaformal import cli
from mmaformal.cli.recall import SHIPPED, AnswerT, RecallKey, answers_recorded, obligations_of, record_digest
from mmaformal.solver.evidence import EvidenceStore

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/guide.md")

#: Commands whose questions are worked out, and words of a command that has another answer on each machine.
_WORKED_OUT = ("diff", "prove", "bound")
_OWN = {"--model", "--list", "--all", "…"}
_WRITES = {"--cuda", "--c", "--npz"}  #: each with a file

Record = dict[str, object]


def commands() -> list[list[str]]:
    """Return the words of each command of the pages whose question is worked out, files to be written left out."""
    found: dict[tuple[str, ...], None] = {}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for line in re.findall(r"^(?: {4}|\$ )?mmaformal ([a-z][^#\n]*)", text, re.MULTILINE):
            words = shlex.split(line)
            for option in _WRITES & set(words):
                del words[words.index(option) : words.index(option) + 2]
            if words[0] in _WORKED_OUT and not _OWN & set(words):
                found[tuple(word for word in words if word != "--verbose")] = None
    return [list(words) for words in found]


@contextlib.contextmanager
def asking(known: dict[str, Record], found: dict[str, Record]) -> Iterator[None]:
    """While commands run: note each question's record in `found`, and answer what is `known` from there."""
    asked = RecallKey.ask

    def ask(  # type: ignore[no-untyped-def]
        self: RecallKey, store: EvidenceStore | None, timeout: float, work: Callable[[], AnswerT], **_
    ) -> AnswerT:
        answer = work()
        found.setdefault(self.shipped_key, short(self.shipped_key, answers_recorded(answer, timeout)))
        return answer

    def ask_if_unknown(  # type: ignore[no-untyped-def]
        self: RecallKey, store: EvidenceStore | None, timeout: float, work: Callable[[], AnswerT], **options
    ) -> object:
        if self.shipped_key not in known:
            return ask(self, store, timeout, work)
        found[self.shipped_key] = known[self.shipped_key]
        return asked(self, store, timeout, work, **options)

    RecallKey.ask = ask_if_unknown  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        RecallKey.ask = asked  # type: ignore[method-assign]


def short(key: str, record: Record) -> Record:
    """Return a question's record with a digest in place of its obligations, thousands of lines, and with its own."""
    scripts = sorted(set(obligations_of(record["json"])))
    digest = hashlib.sha256("\n".join(scripts).encode()).hexdigest()
    told = {**_without_obligations(record), "obligations": {"count": len(scripts), "digest": digest}}
    kept = {**record, "json": told, "whole": "", "narrow_whole": ""}
    return {**kept, "digest": record_digest(key, kept)}


def _without_obligations(record: Record) -> dict[str, object]:
    told = record["json"]
    assert isinstance(told, dict)
    return {name: each for name, each in told.items() if name not in ("proof", "obligations")}


def is_settled(record: Record) -> bool:
    """Whether an answer leaves nothing open."""
    told, text = record["json"], str(record["text"])
    verdict = told.get("answer") if isinstance(told, dict) else None
    return verdict != "unknown" and "best found (" not in text and "not made smaller" not in text


def timeless(record: Record) -> str:
    """Return what an answer says, without the day and the seconds."""
    told = json.dumps(_without_obligations(record), sort_keys=True)
    return re.sub(r'"seconds": [\d.e-]+', "", told)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--again", action="store_true", help="ask every question anew")
    again = parser.parse_args().again
    before: dict[str, Record] = json.loads(SHIPPED.read_text(encoding="utf-8")) if SHIPPED.exists() else {}
    found: dict[str, Record] = {}
    with asking({} if again else before, found):
        for words in commands():
            print("mmaformal", shlex.join(words), file=sys.stderr)
            with tempfile.TemporaryDirectory() as cache, contextlib.redirect_stdout(io.StringIO()):
                os.environ["XDG_CACHE_HOME"] = cache  # nothing is known of the questions before
                cli.main([*words, "--timeout", "600"])
    kept = {key: record for key, record in found.items() if is_settled(record)}
    changed = [key for key in kept if key in before and timeless(before[key]) != timeless(kept[key])]
    SHIPPED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(kept)} of {len(found)} answers are shipped, {len(changed)} of them changed")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
