"""Every pair of different functions compared: an input that shows it, found by running both, then the smallest.

Compiled rows find an input for most pairs in milliseconds; it is made smaller as far as small changes lead.  Solvers
are then asked for the smallest, pair by pair, within a time; where no input was found, whether both are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution, generate
from mmaformal.cases.inputs import Codes, Rows, plain_codes, with_products
from mmaformal.cases.run import quick_results
from mmaformal.cases.shrink import Shows, fewer_products, shrink, size
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr, counted
from mmaformal.executors import telling_lost_workers, width_of, workers
from mmaformal.kernels.rows import processors
from mmaformal.queries.find_difference import find_difference
from mmaformal.site.pairs import FunctionPair, PairAnswer, PairStore, comparisons, questions, types_of_pair
from mmaformal.solver.answers import Answer, Different, Equal
from mmaformal.solver.session import Cache
from mmaformal.spec import DotAdd
from mmaformal.witness import results_differ

#: Rows that each model of some types is run on, and how many of those that differ are made smaller.
ROWS, STARTS = 24_000, 4

_DRAWS: tuple[Distribution, ...] = (*DISTRIBUTIONS, "edge", "tiny", "subnormal", "cancel")

# ---- inputs found by running both ----------------------------------------------------------------------------------


def _differing(pair: FunctionPair, x: NDArray[np.uint64], y: NDArray[np.uint64]) -> list[int]:
    """The rows on which two results are distinguishable."""
    rows = np.flatnonzero(x != y).tolist()
    return [r for r in rows if results_differ(pair.x.spec, pair.y.spec, int(x[r]), int(y[r]))]


def shrunk(pair: FunctionPair, codes: Codes) -> Codes:
    """A small input near one on which both differ, on which they differ too."""
    specs = pair.x.spec, pair.y.spec

    def shows(cases: Sequence[Codes]) -> Iterable[bool]:
        x, y = (quick_results(spec, Rows.of(cases)).tolist() for spec in specs)
        return [results_differ(*specs, *each) for each in zip(x, y, strict=True)]

    few = shrink(specs[0], codes, shows, fewer_products)  # of many products, all small changes are very many
    return _first_places(specs[0], shrink(specs[0], few, shows), shows)


def _first_places(spec: DotAdd, codes: Codes, shows: Shows) -> Codes:
    """Move the products to the first places, if they show it there too."""
    pairs = [pair for pair in zip(codes.a, codes.b, strict=True) if pair != (0, 0)]
    none = replace(codes, a=(0,) * spec.k, b=(0,) * spec.k)
    moved = with_products(none, dict(enumerate(pairs)))
    (so,) = shows([moved])
    return moved if so else codes


def _grouped(pairs: Mapping[str, FunctionPair]) -> Iterator[dict[str, FunctionPair]]:
    """The pairs of each types and K, which can be run on the same rows."""
    groups: dict[tuple[object, ...], dict[str, FunctionPair]] = {}
    for key, pair in pairs.items():
        groups.setdefault((*types_of_pair(pair.x.spec), pair.x.k), {})[key] = pair
    yield from groups.values()


def found_by_running(pairs: Mapping[str, FunctionPair], seed: int = 0) -> dict[str, Codes]:
    """An input for each pair of a group that some of many rows, drawn for each of its models, tell apart; by keys."""
    specs: list[DotAdd] = list(dict.fromkeys(i.spec for pair in pairs.values() for i in (pair.x, pair.y)))
    count = -(-ROWS // len(specs))
    rows = Rows.join([generate(spec, count, seed + n, _DRAWS) for n, spec in enumerate(specs)])
    results = {spec: quick_results(spec, rows) for spec in specs}
    found: dict[str, Codes] = {}
    for key, pair in pairs.items():
        where = _differing(pair, results[pair.x.spec], results[pair.y.spec])
        few = where[:: -(-len(where) // 400)] if where else []
        starts = sorted((rows[r] for r in few), key=lambda codes: size(pair.x.spec, codes))[:STARTS]
        ends = [shrunk(pair, codes) for codes in starts]
        if ends:
            found[key] = min(ends, key=lambda codes: size(pair.x.spec, codes))
    return found


# ---- solvers -------------------------------------------------------------------------------------------------------


def smallest_of_pair(
    pair: FunctionPair, known: Codes | None, timeout: float, memory: int, cache: Cache = False
) -> PairAnswer:
    """The answer of solvers on a pair within a time: equal, or the smallest input from one that is known.

    Pairs share most of what is proved on the way, so that a `cache` saves most of the time.
    """
    answer = find_difference(pair.x, pair.y, known=known, timeout=timeout, memory=memory, cache=cache)
    return replace(_of_answer(pair, answer, known), timeout=timeout)


def _of_answer(pair: FunctionPair, answer: Answer, known: Codes | None) -> PairAnswer:
    plain = replace(
        _plain(pair, known),
        seconds=answer.seconds,
        obligations=tuple(o.digest for o in answer.evidence.obligations),
    )
    if isinstance(answer, Different):
        witness = answer.witness
        found = replace(plain, answer="different", why="", codes=plain_codes(witness), d=witness.results)
        return replace(found, minimality=answer.minimality)
    if isinstance(answer, Equal):
        return replace(plain, answer="equal", why="", codes=None)
    return replace(plain, why=str(getattr(answer, "why", "")))


def _plain(pair: FunctionPair, known: Codes | None) -> PairAnswer:
    """The answer on a pair before solvers are asked."""
    none = PairAnswer(
        pair.key,
        pair.x.label,
        pair.y.label,
        pair.x.k,
        "unknown",
        why="no row tells them apart; no solver was asked",
    )
    if known is None:
        return none
    found = replace(none, answer="different", codes=known, why="")
    return replace(found, d=found.witness(pair).results)


# ---- all of them ---------------------------------------------------------------------------------------------------


def compare_pairs(pairs: Mapping[str, FunctionPair], store: PairStore, told: Progress) -> None:
    """Put an input for each pair that the store has none of yet into it; where no row shows one, that it is open."""
    missing = {key: pair for key, pair in pairs.items() if key not in store.answers}
    left = len(missing)
    for group in _grouped(missing):
        first = next(iter(group.values())).x
        told(f"{first.spec.types}, K={first.k}: running {counted(len(group), 'pair')} of {left}")
        found = found_by_running(group)
        for key, pair in group.items():
            store.add(_plain(pair, found.get(key)))
        left -= len(group)


def _difficulty(pair: FunctionPair, answer: PairAnswer) -> tuple[int, int]:
    """An order: fewer products of the input that is known, smaller K; those of which no input is known come last."""
    if answer.codes is None:
        return pair.x.k + 1, pair.x.k
    return sum(map(bool, answer.codes.a)), pair.x.k


@dataclass(frozen=True, repr=False)
class SolverLimits(ShortRepr):
    """How solvers are asked about pairs."""

    timeout: float  #: seconds for each pair
    limit: float | None = None  #: seconds for all of them
    jobs: int | None = None  #: pairs at a time; as many as there are cores
    cluster: str | None = None  #: the address of a Dask scheduler; processes of this machine
    memory: int = 2048  #: megabytes for each solver process
    cache: Cache = True  #: where what was proved is recorded, and looked up


def ask_solvers(
    pairs: Mapping[str, FunctionPair],
    store: PairStore,
    told: Progress,
    asked: SolverLimits,
    executor: Executor | None = None,
) -> None:
    """Ask solvers about each pair that is open and had less time; what is likely to be quick comes first.

    They are asked by an `executor`, or as `asked` says.  Raises LostWorkerError, and as `executors.workers`.
    """
    open_keys = [
        key for key in pairs if not store.answers[key].settled and store.answers[key].timeout < asked.timeout
    ]
    open_keys.sort(key=lambda key: _difficulty(pairs[key], store.answers[key]))
    jobs = asked.jobs or processors()
    pool = workers(asked.cluster, jobs) if executor is None else nullcontext(executor)
    start = monotonic()
    with pool as executor, telling_lost_workers("what was answered is kept"):
        width = width_of(executor)
        running: dict[Future[PairAnswer], str] = {}
        while True:
            late = asked.limit is not None and monotonic() - start > asked.limit
            while open_keys and len(running) < width and not late:
                key = open_keys.pop(0)
                known = store.answers[key].codes
                future = executor.submit(
                    smallest_of_pair, pairs[key], known, asked.timeout, asked.memory, asked.cache
                )
                running[future] = key
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                key = running.pop(future)
                answer = future.result()
                store.add(answer)
                word = "the smallest input" if answer.smallest else answer.answer
                told(
                    f"{answer.x} and {answer.y}: {word} ({answer.seconds:.1f} s); {len(open_keys)} pairs to ask"
                )


@dataclass(frozen=True, repr=False)
class StoreCounts(ShortRepr):
    """Counts of what a store knows of all pairs."""

    path: Path
    pairs: int  #: of different functions
    words: Counter[str]  #: answers, counted
    smallest: int  #: inputs that are proved to be the smallest

    @property
    def summary(self) -> str:
        """Three lines of counts."""
        told = ", ".join(f"{count:,} {word}" for word, count in self.words.most_common())
        return (
            f"{self.path}: {counted(self.pairs, 'pair')} of different functions: {told}\n"
            f"{counted(self.smallest, 'input')} proved to be the smallest\n"
            f"`mmaformal atlas build --pairs {self.path}` shows them"
        )


def compared_all(
    path: Path, told: Progress, asked: SolverLimits | None = None, executor: Executor | None = None
) -> StoreCounts:
    """Compare all instructions of the tables, going on from a store; `asked`: ask solvers too, by an `executor`.

    Raises PairStoreError for a file that is no store, and as `ask_solvers`.
    """
    pairs = questions(comparisons([i for architecture in ARCHITECTURES.values() for i in architecture]))
    store = PairStore(path, pairs)
    try:
        compare_pairs(pairs, store, told)
        if asked is not None:
            ask_solvers(pairs, store, told, asked, executor)
    finally:
        store.tidy(pairs)
    answers = store.answers.values()
    words = Counter(answer.answer for answer in answers)
    return StoreCounts(path, len(pairs), words, sum(answer.smallest for answer in answers))
