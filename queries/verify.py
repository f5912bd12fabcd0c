"""`mmaformal verify`: prove that both encodings agree, instruction after instruction, on all cores or a cluster."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaformal.architectures import ARCHITECTURES

if TYPE_CHECKING:
    from mmaformal.instruction import Instruction
    from mmaformal.queries.campaign import Campaign
    from mmaformal.solver.evidence import EvidenceStore

_PROVED, _REFUTED, _UNKNOWN = 0, 1, 3

#: How often a pool of processes is started anew after one of them was killed.
_ATTEMPTS = 3

#: Seconds between lines of progress where stderr is no terminal.
_QUIET = 10.0

_DESCRIPTION = """\
Prove, for every input, that the executable encoding of each instruction gives the same code as the SMT encoding, and
that none of its 64-bit operations wraps.  What is proved is recorded at once: interrupted or killed, the same command
goes on where it was, and repeats nothing.  Exit status: 0 all proved, 1 one refuted, 3 one not settled (or, with
--confirm, not confirmed), 2 wrong use.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command; `args.run` of what it parses is the function of `args` that returns the exit code."""
    parser = subparsers.add_parser(
        "verify", help="prove that both encodings of instructions agree", description=_DESCRIPTION
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arch", metavar="ARCH", nargs="?", help="an architecture")
    parser.add_argument("name", metavar="INSTRUCTION", nargs="?", help="SASS or PTX name; all if not given")
    parser.add_argument("--all", action="store_true", help="every instruction there is")
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="worker processes (default: one for each core)"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="workers of the Dask scheduler at tcp://…, or `local`: of one on this machine",
    )
    parser.add_argument(
        "--evidence", metavar="FILE", help="where to record, and look up, what was proved (SQLite)"
    )
    parser.add_argument(
        "--smtlib", metavar="DIR", help="write each obligation as SMT-LIB 2, named by its hash"
    )
    parser.add_argument(
        "--confirm",
        metavar="SOLVER",
        nargs="?",
        const="",
        choices=("", "z3", "bitwuzla"),
        help="put each obligation to a second solver too (this one, where it was not the first)",
    )
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="seconds for each obligation (default 600)"
    )
    parser.add_argument(
        "--memory", type=_positive, default=2048, metavar="MB", help="megabytes per solver (default 2048)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, at the end")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Verify what `args` names, printing as it goes; returns the exit code.

    Raises ValueError for wrong use, EvidenceError, NoSolverError, WitnessError.
    """
    from mmaformal.queries.campaign import Campaign
    from mmaformal.solver.evidence import EvidenceStore, default_path

    instructions = _chosen(args)
    jobs = args.jobs or _cores()
    with EvidenceStore(args.evidence or default_path()) as store, _Progress(args.json) as progress:
        campaign = Campaign(instructions, store, timeout=args.timeout, memory=args.memory, told=progress.show)
        try:
            with progress.interruptible():
                _work(campaign, args, jobs, progress)
        except KeyboardInterrupt:
            progress.note(f"interrupted; what was proved is kept in {store.path}, and is not asked again")
            raise
        finally:
            if args.smtlib:
                write_smtlib(campaign, Path(args.smtlib))
        return _report(campaign, store, args, progress)


def _chosen(args: argparse.Namespace) -> list[Instruction]:
    if args.all == (args.arch is not None):
        raise ValueError("verify ARCH, ARCH INSTRUCTION, or --all")
    if args.all:
        return [instruction for arch in ARCHITECTURES.values() for instruction in arch]
    if args.arch.partition("@")[0] not in ARCHITECTURES:
        raise ValueError(f"no architecture {args.arch!r}; there are {', '.join(ARCHITECTURES)}")
    architecture = ARCHITECTURES[args.arch]
    return [architecture[args.name]] if args.name else list(architecture)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


def _pool(args: argparse.Namespace, jobs: int) -> AbstractContextManager[Executor]:
    from mmaformal.solver.pool import cluster, processes

    if args.cluster is None:
        return processes(jobs)
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise ValueError("--cluster needs Dask: pip install 'mmaformal[cluster]'") from None
    return cluster(args.cluster, jobs)


def _work(campaign: Campaign, args: argparse.Namespace, jobs: int, progress: _Progress) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            with _pool(args, jobs) as executor:
                campaign.run(executor, jobs)
                if args.confirm is not None:
                    campaign.confirm(executor, jobs, args.confirm or None)
            return
        except BrokenExecutor:
            if attempt == _ATTEMPTS - 1:
                raise
            progress.note("a worker process was killed; going on with new ones")


# ---- telling ---------------------------------------------------------------------------------------------------


class _Progress:
    """Each instruction on stdout once it is settled; on stderr what runs, what is done, and the time left."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.tty = silent, sys.stderr.isatty()
        self.start = self.told = time.monotonic()
        self.interrupted = False
        self.said: set[int] = set()  # ids of the goals that were told

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
            if self.silent:
                continue
            self._clear()
            also = f" and {len(goal.instructions) - 1} more" if len(goal.instructions) > 1 else ""
            cost = f"{len(goal.claims or ())} obligations, {answer.seconds:.1f} s of solving"
            if isinstance(answer, Holds):
                print(f"proved   {goal.label}{also}  ({cost})", flush=True)
            else:
                word = "REFUTED" if isinstance(answer, Fails) else "UNKNOWN"
                print(f"{word:8} {goal.label}{also}\n{answer}", flush=True)
        line = f"{self._done(campaign)}; {', '.join(campaign.running[:1])}"
        if self.tty:
            print(f"\r\033[K{line[:100]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.told >= _QUIET:
            self.told = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def _done(self, campaign: Campaign) -> str:
        done, of = sum(goal.done for goal in campaign.goals.values()), len(campaign.goals)
        settled = len(campaign.outcomes)
        text = f"{done}/{of} done, {settled} obligations ({campaign.known} known), {self.elapsed:.0f} s"
        if done == of:
            return f"{text}, {len(campaign.confirmed)} confirmed" if campaign.confirmed else text
        return f"{text}, about {self.elapsed * (of - done) / done:.0f} s left" if done else text


def _report(campaign: Campaign, store: EvidenceStore, args: argparse.Namespace, progress: _Progress) -> int:
    from mmaformal.solver.answers import Fails, Holds

    answers = list(campaign.answers())
    refuted = [i for i, answer in answers if isinstance(answer, Fails)]
    open_ = [i for i, answer in answers if not isinstance(answer, (Holds, Fails))]
    unconfirmed = {
        sha256: outcome for sha256, outcome in campaign.confirmed.items() if outcome.verdict != "unsat"
    }
    told: dict[str, Any] = {
        "instructions": len(answers),
        "proved": len(answers) - len(refuted) - len(open_),
        "refuted": len(refuted),
        "unknown": len(open_),
        "obligations": len(campaign.outcomes),
        "asked": campaign.asked,
        "known": campaign.known,
        "confirmed": len(campaign.confirmed) - len(unconfirmed),
        "seconds": round(progress.elapsed, 1),
        "evidence": str(store.path),
    }
    if args.json:
        told["unconfirmed"] = [
            {"sha256": sha256, "verdict": outcome.verdict, "why": outcome.why}
            for sha256, outcome in unconfirmed.items()
        ]
        told["answers"] = [_as_json(i, answer) for i, answer in answers]
        print(json.dumps(told, indent=2), flush=True)
    else:
        for sha256, outcome in unconfirmed.items():
            claim = campaign.claims[sha256]
            print(f"NOT CONFIRMED  {claim.name}: {claim.statement}: {outcome.verdict} {outcome.why}")
        print(_summary(told, args.confirm is not None), flush=True)
    disagree = any(outcome.verdict == "sat" for outcome in unconfirmed.values())
    if refuted or disagree:
        return _REFUTED
    return _UNKNOWN if open_ or unconfirmed else _PROVED


def _summary(told: dict[str, Any], confirm: bool) -> str:
    parts = [f"{told['instructions']} instructions: {told['proved']} proved"]
    parts += [f"{told[what]} {what}" for what in ("refuted", "unknown") if told[what]]
    tail = f"; {told['obligations']} obligations, {told['known']} of them known, {told['seconds']:.0f} s"
    if confirm:
        tail += f"; {told['confirmed']} confirmed by a second solver"
    return ", ".join(parts) + tail


def _as_json(instruction: Instruction, answer: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"architecture": instruction.architecture, "instruction": instruction.name}
    out |= answer.to_json()
    obligations = out.get("obligations", out.get("proof", {}).get("obligations", []))
    out.pop("proof", None)
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
            {"instructions": [i.label for i in goal.instructions], "obligations": goal.claims}
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


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m mmaformal.queries.verify hopper HMMA.16816.F32`."""
    parser = argparse.ArgumentParser(prog="verify", description=_DESCRIPTION)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
