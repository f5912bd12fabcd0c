"""The work of `mmaformal verify`: prove both encodings equal, instruction by instruction, on all cores or a cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN
from mmaformal.cli.terminal import width
from mmaformal.display import TABLES, ShortRepr, counted, folded

if TYPE_CHECKING:
    from mmaformal.campaign import Campaign
    from mmaformal.instruction import Instruction
    from mmaformal.solver.answers import Answer
    from mmaformal.solver.evidence import EvidenceStore

#: How often in a row workers may be lost without anything being settled in between.
_ATTEMPTS = 3

#: Seconds between lines of progress where stderr is no terminal.
_QUIET = 10.0


@dataclass(frozen=True)
class Request:
    """A request of what to verify, and how; `mmaformal verify --help` says what each of these is."""

    instructions: Sequence[Instruction]
    jobs: int | None = None
    cluster: str | None = None
    evidence: Path | None = None
    no_cache: bool = False
    smtlib: Path | None = None
    confirm: str | None = None  #: a solver; "" for all others than the first
    confirm_timeout: float = 300.0
    timeout: float = 600.0
    memory: int = 2048
    solvers: tuple[str, ...] = ()  #: all, where none is named
    as_json: bool = False
    table: str | None = None  #: a name of `display.TABLES`


class Limits(TypedDict):
    """Those of a request that `mmaformal verify` passes on as they are."""

    jobs: int | None
    evidence: Path | None
    no_cache: bool
    smtlib: Path | None
    confirm: str | None
    confirm_timeout: float
    timeout: float
    memory: int
    solvers: tuple[str, ...]
    as_json: bool
    table: str | None


class _Told(TypedDict):
    """The numbers and names that are told of a campaign."""

    instructions: int
    proved: int
    refuted: int
    unknown: int
    obligations: int
    asked: int
    known: int
    confirmed: int
    by: dict[str, int]
    contradictions: list[str]
    seconds: float
    evidence: str


@dataclass(frozen=True, repr=False)
class Verified(ShortRepr):
    """The report, as text and as JSON, on instructions that were all proved."""

    text: str
    told: dict[str, object]

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, object]:
        return self.told


def run_campaign(args: Request, keep: Callable[[Verified, EvidenceStore], None] | None = None) -> int:
    """Verify what is asked for, printing as it goes; returns the exit code.  Where all is proved, `keep` is given it.

    Raises ValueError for wrong use, EvidenceError, NoSolverError, WitnessError.
    """
    from mmaformal.campaign import Campaign
    from mmaformal.solver.evidence import EvidenceStore, default_path

    if args.evidence is not None and args.no_cache:
        raise ValueError("--evidence and --no-cache exclude each other")
    jobs = args.jobs or _cores()
    path = ":memory:" if args.no_cache else args.evidence or default_path()
    with EvidenceStore(path) as store, _Progress(args.as_json or args.table is not None) as progress:
        campaign = Campaign(
            args.instructions,
            store,
            timeout=args.timeout,
            memory=args.memory,
            solver=args.solvers or None,
            told=progress.show,
        )
        try:
            with progress.interruptible():
                _work(campaign, args, jobs, progress)
        except KeyboardInterrupt:
            if not args.no_cache:
                progress.note(f"interrupted; what was proved is kept in {store.path}, and is not asked again")
            raise
        finally:
            if args.smtlib:
                write_smtlib(campaign, args.smtlib)
        return _report(campaign, store, args, progress, keep)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


def _pool(args: Request, jobs: int) -> AbstractContextManager[Executor]:
    from mmaformal.executors import workers

    return workers(args.cluster, jobs)


def _work(campaign: Campaign, args: Request, jobs: int, progress: _Progress) -> None:
    from mmaformal.executors import width_of
    from mmaformal.solver.pool import lost_workers

    lost = settled = 0
    while True:
        try:
            with _pool(args, jobs) as executor:
                width = width_of(executor)
                campaign.run(executor, width)
                if args.confirm is not None:
                    campaign.confirm(executor, width, args.confirm or None, args.confirm_timeout)
            return
        except lost_workers():
            lost = 1 if campaign.asked > settled else lost + 1
            settled = campaign.asked
            if lost == _ATTEMPTS:
                at = campaign.running[0] if campaign.running else "the start"
                progress.note(f"workers are killed again and again (out of memory?), at {at}; giving up")
                return
            progress.note("a worker process was killed; going on with new ones")


# ---- telling ---------------------------------------------------------------------------------------------------


class _Progress:
    """Each instruction on stdout once it is settled; on stderr what runs, what is done, and the time left."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.tty = silent, sys.stderr.isatty()
        self.start = self.told = time.monotonic()
        self.interrupted = False
        self.said: set[int] = set()  # ids of the goals that were told
        self.lines: list[str] = []  # of those that are proved

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C is seen by `show`, between two events, so that nothing is broken off half-way, however often."""
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def _clear(self) -> None:
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        self._clear()
        print(f"mmaformal: {text}", file=sys.stderr, flush=True)

    def show(self, campaign: Campaign) -> None:
        from mmaformal.solver.answers import Fails, Holds

        if self.interrupted:
            raise KeyboardInterrupt
        for goal in campaign.goals.values():
            if not goal.done or id(goal) in self.said:
                continue
            self.said.add(id(goal))
            answer = campaign.answer(goal, goal.instructions[0])
            also = f" and {len(goal.instructions) - 1} more" if len(goal.instructions) > 1 else ""
            cost = f"{len(goal.claims or ())} obligations, {answer.seconds:.1f} s of solving"
            line = f"proved   {goal.label}{also}  ({cost})"
            if isinstance(answer, Holds):
                self.lines.append(line)
            if self.silent:
                continue
            self._clear()
            if isinstance(answer, Holds):
                print(folded(line), flush=True)
            else:
                word = "REFUTED" if isinstance(answer, Fails) else "UNKNOWN"
                print(folded(f"{word:8} {goal.label}{also}\n{answer}"), flush=True)
        line = f"{self._done(campaign)}; {', '.join(campaign.running[:1])}"
        if self.tty:
            print(f"\r\033[K{line[: (width(sys.stderr) or 101) - 1]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.told >= _QUIET:
            self.told = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def _done(self, campaign: Campaign) -> str:
        done, of = sum(goal.done for goal in campaign.goals.values()), len(campaign.goals)
        settled = len(campaign.outcomes)
        text = f"{done}/{of} done, {settled} obligations ({campaign.known} known), {self.elapsed:.0f} s"
        if done == of:
            return f"{text}, {_confirmed(campaign)}" if campaign.confirmed else text
        return f"{text}, about {self.elapsed * (of - done) / done:.0f} s left" if done else text


def _confirmed(campaign: Campaign) -> str:
    """How far the confirmation is."""
    verdicts = [confirmation.verdict for confirmation in campaign.confirmed.values()]
    text = f"confirmed {verdicts.count('unsat')} of {len(campaign.claims)}"
    return f"{text}, {verdicts.count('unknown')} not settled" if "unknown" in verdicts else text


def _report(
    campaign: Campaign,
    store: EvidenceStore,
    args: Request,
    progress: _Progress,
    keep: Callable[[Verified, EvidenceStore], None] | None,
) -> int:
    from mmaformal.solver.answers import Fails, Holds

    answers = list(campaign.answers())
    refuted = [i for i, answer in answers if isinstance(answer, Fails)]
    proved = [i for i, answer in answers if isinstance(answer, Holds)]
    of = sum(len(goal.instructions) for goal in campaign.goals.values())
    sound = {
        sha256: each for sha256, each in campaign.confirmed.items() if sha256 not in campaign.contradicted
    }
    confirmed = [sha256 for sha256, each in sound.items() if each.verdict == "unsat"]
    unconfirmed = {sha256: each for sha256, each in sound.items() if each.verdict != "unsat"}
    told: _Told = {
        "instructions": of,
        "proved": len(proved),
        "refuted": len(refuted),
        "unknown": of - len(proved) - len(refuted),
        "obligations": len(campaign.outcomes),
        "asked": campaign.asked,
        "known": campaign.known,
        "confirmed": len(confirmed),
        "by": _by(campaign, confirmed),
        "contradictions": list(campaign.contradicted.values()),
        "seconds": round(progress.elapsed, 1),
        "evidence": str(store.path),
    }
    said = [
        f"NOT CONFIRMED  {campaign.claims[sha256].name}: {campaign.claims[sha256].statement}: {confirmation}"
        for sha256, confirmation in unconfirmed.items()
    ]
    said += [f"CONTRADICTION  {why}" for why in campaign.contradicted.values()]
    summary = _summary(told, args.confirm is not None)
    whole: dict[str, object] = {
        **told,
        "unconfirmed": [
            {"sha256": sha256, "verdict": confirmation.verdict, "why": confirmation.why}
            for sha256, confirmation in unconfirmed.items()
        ],
        "answers": [_as_json(i, answer) for i, answer in answers],
    }
    if keep is not None and len(proved) == of and not said:
        keep(Verified("\n".join([*progress.lines, summary]), whole), store)
    if args.table is not None:
        for line in said:
            progress.note(line)
        print(TABLES[args.table](campaign_rows(whole)), end="", flush=True)
    elif args.as_json:
        print(json.dumps(whole, indent=2), flush=True)
    else:
        print("\n".join([*said, summary]), flush=True)
    if refuted:
        return REFUTED
    settled = len(proved) == of and (args.confirm is None or len(confirmed) == len(campaign.claims))
    return SETTLED if settled else UNKNOWN


def _by(campaign: Campaign, confirmed: Sequence[str]) -> dict[str, int]:
    """How many obligations were confirmed by whom; in cases, where they were split."""
    count: dict[str, int] = {}
    for sha256 in confirmed:
        confirmation = campaign.confirmed[sha256]
        who = " and ".join(sorted(confirmation.solvers))
        key = who if confirmation.cases == 1 else f"{who}, in cases"
        count[key] = count.get(key, 0) + 1
    return dict(sorted(count.items()))


def _summary(told: _Told, confirm: bool) -> str:
    parts = [f"{counted(told['instructions'], 'instruction')}: {told['proved']} proved"]
    parts += [f"{told[what]} {what}" for what in ("refuted", "unknown") if told[what]]
    tail = f"; {told['obligations']} obligations, {told['known']} of them known, {told['seconds']:.0f} s"
    if confirm:
        by = ", ".join(f"{count} by {who}" for who, count in told["by"].items())
        tail += f"; {told['confirmed']} confirmed by another solver{by and f' ({by})'}"
    return ", ".join(parts) + tail


def campaign_rows(told: Mapping[str, object]) -> list[dict[str, object]]:
    """The lines of the table: what was found of each instruction, from all that is told as JSON."""
    answers = told["answers"]
    assert isinstance(answers, list)
    return [
        {
            **{name: each[name] for name in ("architecture", "instruction", "answer")},
            "obligations": len(each["obligations"]),
            "seconds": round(each["seconds"], 1),
        }
        for each in answers
    ]


def _as_json(instruction: Instruction, answer: Answer) -> dict[str, object]:
    out: dict[str, object] = {"architecture": instruction.architecture, "instruction": instruction.name}
    out |= answer.to_json()
    proof = out.pop("proof", None)
    obligations = out.get("obligations", proof["obligations"] if isinstance(proof, dict) else [])
    assert isinstance(obligations, list)
    out["obligations"] = [obligation["sha256"] for obligation in obligations]
    return out


def write_smtlib(campaign: Campaign, folder: Path) -> None:
    """Each obligation that was proved as `HASH.smt2`, which stock solvers answer with `unsat`; and `index.json`.

    The hash is the SHA-256 of the file.  The index has each one's name and statement, and for each instruction what
    its proof rests on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    proved = [sha256 for sha256, outcome in campaign.outcomes.items() if outcome.verdict == "unsat"]
    for sha256 in proved:
        path = folder / f"{sha256}.smt2"
        if not path.exists():
            _write(path, campaign.claims[sha256].script)
    claims = {sha256: campaign.claims[sha256] for sha256 in proved}
    index = {
        "obligations": {
            sha256: {"name": claim.name, "statement": claim.statement} for sha256, claim in claims.items()
        },
        "proofs": [
            {"instructions": [i.label for i in goal.instructions], "obligations": list(goal.claims or ())}
            for goal in campaign.goals.values()
            if goal.done and goal.why is None
        ],
    }
    _write(folder / "index.json", json.dumps(index, indent=1, ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8", newline="\n")
    draft.replace(path)
