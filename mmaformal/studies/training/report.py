"""Tables of what the trainings show: accuracies over seeds, weights against fp32's and a wide accumulator's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.studies.rows import markdown
from mmaformal.studies.training.networks import TESTED
from mmaformal.studies.training.runs import Job, TrainingUnit, apart
from mmaformal.studies.training.sweep import BITS, Results, Setting, mean_and_spread, with_bits


@dataclass(frozen=True, repr=False)
class Point(ShortRepr):
    """A setting of one network, over all seeds."""

    setting: Setting
    accuracies: tuple[float, ...]
    differences: tuple[float, ...]  #: of accuracy, from the same seed in fp32
    apart: tuple[float, ...]  #: 1 − cosine of weights with fp32's
    apart_from_widest: tuple[float, ...]  #: the same with those of the widest accumulator of the same format
    progress: tuple[float, ...]  #: 1 − cosine with fp32's after each part of the training, the mean of seeds
    layers: tuple[tuple[str, float], ...]  #: the same at the end of each matrix or kernel

    @property
    def mean(self) -> float:
        return mean_and_spread(self.accuracies)[0]

    @property
    def spread(self) -> float:
        """The standard deviation over seeds."""
        return mean_and_spread(self.accuracies)[1]


class StudyReport:
    """The points of a study that are known; what is not is left out."""

    def __init__(
        self, results: Results, settings: Sequence[Setting], networks: Sequence[str], seeds: int
    ) -> None:
        self.results, self.settings, self.networks, self.seeds = results, settings, tuple(networks), seeds
        self.points = {network: list(self._points(network)) for network in networks}

    def _points(self, network: str) -> Iterator[Point]:
        widest = {fmt: with_bits(fmt, bits[-1]) for fmt, bits in BITS.items()}
        for s in self.settings:
            known = [seed for seed in range(self.seeds) if Job(network, s.unit, seed) in self.results]
            if len(known) < self.seeds:
                continue
            jobs = [Job(network, s.unit, seed) for seed in known]
            found = [self.results[job] for job in jobs]
            fp32 = [self.results[Job(network, None, seed)].accuracy for seed in known]
            wide = widest.get(s.curve, widest["fp16"])
            yield Point(
                s,
                tuple(each.accuracy for each in found),
                tuple(each.accuracy - own for each, own in zip(found, fp32, strict=True)),
                tuple(each.progress[-1] for each in found),
                tuple(self._from(wide, job) for job in jobs),
                tuple(float(x) for x in np.mean([each.progress for each in found], axis=0)),
                tuple(
                    (name, float(np.mean([each.layers[place][1] for each in found])))
                    for place, (name, _) in enumerate(found[0].layers)
                ),
            )

    def _from(self, unit: TrainingUnit, job: Job) -> float:
        other = Job(job.network, unit, job.seed)
        if other not in self.results:
            return float("nan")
        return apart(self.results.weights(job), self.results.weights(other))

    def of(self, network: str, part: str, curve: str | None = None) -> list[Point]:
        wanted = (p for p in self.points[network] if p.setting.part == part)
        return [p for p in wanted if curve in (None, p.setting.curve)]

    def curves(self, part: str) -> list[str]:
        return list(dict.fromkeys(s.curve for s in self.settings if s.part == part))

    def fp32(self, network: str) -> Point:
        return self.of(network, "reference")[0]

    def stable_from(self, network: str, curve: str) -> str:
        """The least x from which on no mean accuracy is off the curve's last one by more than an image for testing.

        Or than a standard error of differences between runs of the same seed, if that is more.
        """
        points = self.of(network, "bits", curve)
        found = points[-1].setting.x if points else "–"
        for p in reversed(points):
            off = [x - y for x, y in zip(p.accuracies, points[-1].accuracies, strict=True)]
            mean, spread = mean_and_spread(off)
            if abs(mean) > max(spread / len(off) ** 0.5, 1 / TESTED + 1e-9):
                break
            found = p.setting.x
        return found

    def settled_from(self, network: str, curve: str, factor: float = 2.0) -> str:
        """The least x from which on weights are no further from the widest's than twice what the second widest's are.

        Or than a hundredth of what the narrowest's are, if that is more: two wide paths may be one and the same.
        """
        points = self.of(network, "bits", curve)
        if len(points) < 2:
            return "–"
        apart = [float(np.mean(p.apart_from_widest)) for p in points]
        limit = max(factor * apart[-2], apart[0] / 100)
        settled = [p.setting.x for place, p in enumerate(points) if max(apart[place:]) <= limit]
        return settled[0]

    def pairwise(
        self, network: str, units: Sequence[TrainingUnit | None], seed: int = 0
    ) -> NDArray[np.float64]:
        """1 − cosine of the weights of each two units."""
        weights = [self.results.weights(Job(network, unit, seed)) for unit in units]
        return np.array([[apart(x, y) for y in weights] for x in weights])


def rows(report: StudyReport) -> list[dict[str, object]]:
    """Returns a dict of plain values for each network and setting; what is not known is None."""
    return [
        {
            "network": network,
            "part": p.setting.part,
            "curve": p.setting.curve,
            "x": p.setting.x,
            "seeds": len(p.accuracies),
            "accuracy": p.mean,
            "accuracy_spread": p.spread,
            "accuracy_from_fp32": mean_and_spread(p.differences)[0],
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


def text(report: StudyReport) -> str:
    """All of it, as Markdown."""
    blocks = [_head(report)]
    if report.curves("bits"):
        blocks += ["## FracBits", *(_bits(report, network) for network in report.networks), _regimes(report)]
    for part, title in (("groups", "## K"), ("orders", "## Order"), ("units", "## Units")):
        if report.curves(part):
            blocks += [title, *(_table(report, network, part) for network in report.networks)]
    return "\n\n".join(blocks) + "\n"


def _head(report: StudyReport) -> str:
    lines = [
        f"Means of {report.seeds} seeds ± their standard deviation; *from fp32* is the mean difference of accuracy",
        "between runs of one seed ± its standard error, in %; 1 − cos is of all weights, with those of fp32; with",
        "those of the widest accumulator of the same format (of fp16 where there is none).",
        "",
    ]
    cells = []
    for network in report.networks:
        p = report.fp32(network)
        ends = map(_percent, (min(p.accuracies), max(p.accuracies)))
        cells.append([network, f"{_percent(p.mean)} ± {_percent(p.spread)}", *ends])
    table = markdown(["network", "torch fp32, accuracy", "least", "largest"], cells)
    return "\n".join([*lines, table])


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"


def _apart(values: Sequence[float]) -> str:
    """A mean; – where it is not known."""
    mean = np.mean(values)
    return "–" if np.isnan(mean) else f"{mean:.1e}"


def _difference(p: Point) -> str:
    mean, spread = mean_and_spread(p.differences)
    return f"{100 * mean:+.2f} ± {100 * spread / len(p.differences) ** 0.5:.2f}"


def _bits(report: StudyReport, network: str) -> str:
    """A row for each FracBits, columns for each format."""
    curves = report.curves("bits")
    found = {(p.setting.curve, p.setting.x): p for p in report.of(network, "bits")}
    xs = sorted({x for _, x in found}, key=int)
    head = ["FracBits", *(each for c in curves for each in (f"{c}: accuracy, from fp32", "1 − cos"))]
    lines = []
    for x in xs:
        cells = [x]
        for curve in curves:
            p = found.get((curve, x))
            if p is None:
                cells += ["", ""]
                continue
            cells.append(f"{_percent(p.mean)} ± {100 * p.spread:.2f}, {_difference(p)}")
            cells.append(f"{_apart(p.apart)}; {_apart(p.apart_from_widest)}")
        lines.append(cells)
    return f"### {network}\n\n{markdown(head, lines)}"


def _regimes(report: StudyReport) -> str:
    rows = [
        (network, curve, report.stable_from(network, curve), report.settled_from(network, curve))
        for network in report.networks
        for curve in report.curves("bits")
    ]
    head = "network", "format", "accuracy from", "weights from"
    return f"### Where curves settle\n\n{markdown(head, rows)}"


def _table(report: StudyReport, network: str, part: str) -> str:
    head = "", "", "accuracy", "from fp32", "1 − cos with fp32", "with the widest"
    rows = [
        [
            *(p.setting.curve, p.setting.x, f"{_percent(p.mean)} ± {100 * p.spread:.2f}", _difference(p)),
            *(_apart(p.apart), _apart(p.apart_from_widest)),
        ]
        for p in report.of(network, part)
    ]
    return f"### {network}\n\n{markdown(head, rows)}"
