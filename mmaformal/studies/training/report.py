"""Tables of what the trainings show: scores over seeds, weights against fp32's and a wide accumulator's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mmaformal.display import ShortRepr, counted
from mmaformal.studies.rows import markdown
from mmaformal.studies.training.language import Characters
from mmaformal.studies.training.networks import TESTED
from mmaformal.studies.training.runs import TASKS, Job, angle_apart
from mmaformal.studies.training.sweep import Results, Setting, jobs, mean_and_spread


@dataclass(frozen=True, repr=False)
class Measure(ShortRepr):
    """How scores of a network are told."""

    name: str
    scale: int
    places: int
    unit: str
    tolerance: float  #: what differs by no more is not told apart

    def text(self, x: float, signed: bool = False) -> str:
        return f"{x * self.scale:{'+' if signed else ''}.{self.places}f}"


ACCURACY = Measure("accuracy", 100, 2, " %", 1 / TESTED + 1e-9)  # an image
PERPLEXITY = Measure("perplexity", 1, 3, "", 0.05)


def measure_training(network: str) -> Measure:
    return PERPLEXITY if isinstance(TASKS[network], Characters) else ACCURACY


@dataclass(frozen=True, repr=False)
class Point(ShortRepr):
    """A setting of one network, over the seeds that are known."""

    setting: Setting
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    differences: tuple[float, ...]  #: from the score of the same seed in fp32
    apart: tuple[float, ...]  #: 1 − cosine of weights with fp32's
    apart_from_widest: tuple[float, ...]  #: the same with those of the widest accumulator of the same format
    progress: tuple[float, ...]  #: 1 − cosine with fp32's after each part of the training, the mean of seeds
    digests: tuple[str, ...]  #: of weights

    @property
    def mean(self) -> float:
        return mean_and_spread(self.scores)[0]

    @property
    def spread(self) -> float:
        """The standard deviation over seeds."""
        return mean_and_spread(self.scores)[1]

    @property
    def error(self) -> float:
        """The standard error of the mean difference from fp32."""
        return mean_and_spread(self.differences)[1] / math.sqrt(len(self.differences))


class StudyReport:
    """The points of a study that are known; what is not is left out."""

    def __init__(
        self, results: Results, settings: Sequence[Setting], networks: Sequence[str], seeds: int
    ) -> None:
        self.results, self.settings, self.networks, self.seeds = results, settings, tuple(networks), seeds
        self.points = {network: list(self._points(network)) for network in networks}

    def _points(self, network: str) -> Iterator[Point]:
        reference, *_ = self.settings
        for s in self.settings:
            known = [
                seed
                for seed in range(self.seeds)
                if s.job(network, seed) in self.results and reference.job(network, seed) in self.results
            ]
            if not known:
                continue
            found = [self.results[s.job(network, seed)] for seed in known]
            fp32 = [self.results[reference.job(network, seed)].score for seed in known]
            yield Point(
                s,
                tuple(known),
                tuple(each.score for each in found),
                tuple(each.score - own for each, own in zip(found, fp32, strict=True)),
                tuple(each.progress[-1] for each in found),
                tuple(self._from_widest(s, network, seed) for seed in known),
                tuple(float(x) for x in np.mean([each.progress for each in found], axis=0)),
                tuple(each.digest for each in found),
            )

    def _from_widest(self, s: Setting, network: str, seed: int) -> float:
        """1 − cosine with the widest accumulator's weights; NaN where these are not known."""
        bits = [each for each in self.settings if each.part == "bits"]
        own = [x for x in bits if x.curve in s.curve] or [x for x in bits if x.curve == bits[0].curve]
        job, wide = s.job(network, seed), max(own, key=lambda x: int(x.x), default=s).job(network, seed)
        if wide not in self.results:
            return float("nan")
        return angle_apart(self.results.weights(job), self.results.weights(wide))

    def of(self, network: str, part: str, curve: str | None = None) -> list[Point]:
        wanted = (p for p in self.points[network] if p.setting.part == part)
        return [p for p in wanted if curve in (None, p.setting.curve)]

    def over_bits(self, network: str, curve: str) -> list[Point]:
        """The points of a format, by width."""
        return sorted(self.of(network, "bits", curve), key=lambda p: int(p.setting.x))

    def curves(self, part: str) -> list[str]:
        return list(dict.fromkeys(s.curve for s in self.settings if s.part == part))

    def fp32(self, network: str) -> Point:
        return self.of(network, "reference")[0]

    def wanted(self) -> list[Job]:
        return jobs(self.settings, self.networks, self.seeds)

    def stable_from(self, network: str, curve: str) -> str:
        """The least x from which on no mean score is off the curve's last one by more than the measure's tolerance.

        Or than a standard error of differences between runs of the same seed, if that is more.
        """
        points = self.over_bits(network, curve)
        found = points[-1].setting.x if points else "–"
        for p in reversed(points):
            last = dict(zip(points[-1].seeds, points[-1].scores, strict=True))
            off = [x - last[seed] for seed, x in zip(p.seeds, p.scores, strict=True) if seed in last]
            mean, spread = mean_and_spread(off)
            if not abs(mean) <= max(spread / len(off) ** 0.5, measure_training(network).tolerance):
                break
            found = p.setting.x
        return found

    def settled_from(self, network: str, curve: str, factor: float = 2.0) -> str:
        """The least x from which on weights are no further from the widest's than twice what the second widest's are.

        Or than a hundredth of what the narrowest's are, if that is more: two wide paths may be one and the same.
        """
        points = self.over_bits(network, curve)
        if len(points) < 2:
            return "–"
        apart = [float(np.mean(p.apart_from_widest)) for p in points]
        limit = max(factor * apart[-2], apart[0] / 100)
        settled = [p.setting.x for place, p in enumerate(points) if max(apart[place:]) <= limit]
        return settled[0] if settled else "–"

    def same_from(self, network: str, curve: str) -> str:
        """The least x from which on all that was run of each seed gives the same bits; – where only the widest does."""
        points = self.over_bits(network, curve)
        digests = [dict(zip(p.seeds, p.digests, strict=True)) for p in points]
        same = [own.items() <= digests[-1].items() for own in digests]
        least = max((place + 1 for place, equal in enumerate(same) if not equal), default=0)
        return points[least].setting.x if least < len(points) - 1 else "–"


def report_rows(report: StudyReport) -> list[dict[str, object]]:
    """Returns a dict of plain values for each network and setting; what is not known is None."""
    return [
        {
            "network": network,
            "part": p.setting.part,
            "curve": p.setting.curve,
            "x": p.setting.x,
            "seeds": len(p.scores),
            "score": p.mean,
            "score_spread": p.spread,
            "score_from_fp32": mean_and_spread(p.differences)[0],
            "apart": _mean(p.apart),
            "apart_from_widest": _mean(p.apart_from_widest),
        }
        for network in report.networks
        for p in report.points[network]
    ]


def _mean(values: Sequence[float]) -> float | None:
    mean = float(np.mean(values))
    return None if np.isnan(mean) else mean


# ---- tables ------------------------------------------------------------------------------------------------------


def report_text(report: StudyReport) -> str:
    """All of it, as Markdown."""
    blocks = [_head(report)]
    if report.curves("bits"):
        blocks += [
            "## FracBits",
            *(_table(report, network, "bits") for network in report.networks),
            _regimes(report),
        ]
    for part, title in (("groups", "## K"), ("orders", "## Order"), ("units", "## Units")):
        if report.curves(part):
            blocks += [title, *(_table(report, network, part) for network in report.networks)]
    return "\n\n".join(blocks) + "\n"


def _head(report: StudyReport) -> str:
    wanted = report.wanted()
    known = [report.results[job] for job in wanted if job in report.results]
    proved = sum(each.equal_to is not None for each in known)
    hours = sum(each.seconds for each in known) / 3600
    lines = [
        f"{len(known)} of {counted(len(wanted), 'run')} are known, {proved} of them proved equal to another and",
        f"not run; the others took {hours:.1f} hours of one processor.  Means of so many seeds ± their standard",
        "deviation; *from fp32* is the mean difference between runs of one seed ± its standard error; 1 − cos is of",
        "all weights (of one step, of the gradient), with those of fp32, after a quarter of the training and at its",
        "end, and with those of the widest accumulator of the same format; *weights* are the first digits of a digest",
        "of those of seed 0.",
        "",
    ]
    cells = []
    for network in report.networks:
        p, how = report.fp32(network), measure_training(network)
        ends = map(how.text, (min(p.scores), max(p.scores)))
        cells.append([network, f"{how.name}{how.unit}", f"{how.text(p.mean)} ± {how.text(p.spread)}", *ends])
    return "\n".join([*lines, markdown(["network", "torch fp32", "mean", "least", "largest"], cells)])


def _apart(values: Sequence[float]) -> str:
    """A mean; – where it is not known."""
    mean = np.mean(values)
    return "–" if np.isnan(mean) else f"{mean:.1e}"


def _with(value: str, error: str, p: Point) -> str:
    return f"{value} ± {error}" if len(p.seeds) > 1 else value


def _table(report: StudyReport, network: str, part: str) -> str:
    how = measure_training(network)
    head = (
        "",
        "",
        "seeds",
        f"{how.name}{how.unit}",
        "from fp32",
        "1 − cos with fp32",
        "with the widest",
        "weights",
    )
    cells = [
        [
            *(p.setting.curve, p.setting.x, len(p.seeds), _with(how.text(p.mean), how.text(p.spread), p)),
            _with(how.text(mean_and_spread(p.differences)[0], signed=True), how.text(p.error), p),
            f"{p.progress[0]:.1e}; {_apart(p.apart)}",
            _apart(p.apart_from_widest),
            p.digests[0][:6] if p.seeds[0] == 0 else "–",
        ]
        for curve in report.curves(part)
        for p in (report.over_bits(network, curve) if part == "bits" else report.of(network, part, curve))
    ]
    return f"### {network}\n\n{markdown(head, cells)}"


def _regimes(report: StudyReport) -> str:
    """Where scores and weights settle, and the width that a count says is enough."""
    lines = []
    for network in report.networks:
        for curve in report.curves("bits"):
            settings = [s for s in report.settings if s.part == "bits" and s.curve == curve and s.counted]
            rows = [s.job(network, seed) for s in settings for seed in range(report.seeds)]
            needed = [report.results[job].needed for job in rows if job in report.results]
            enough = max((bits for bits in needed if bits is not None), default="–")
            ends = report.stable_from(network, curve), report.settled_from(network, curve)
            lines.append([network, curve, *ends, report.same_from(network, curve), enough])
    head = "network", "format", "score from", "weights from", "same bits from", "nothing lost from"
    return f"### Where curves settle\n\n{markdown(head, lines)}"
