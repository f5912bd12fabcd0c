"""Figures 7a, 7b and 9 of TensorGauge for what was trained here."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from mmaformal.statistics import matplotlib_pyplot
from mmaformal.studies.training.report import Measure, Point, StudyReport, measure
from mmaformal.studies.training.runs import LOOKS
from mmaformal.torch.tensors import Call

_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")


def draw(report: StudyReport, folder: Path) -> list[Path]:
    """A figure for each part; returns the files.  Raises ImportError, saying how to install it, without matplotlib."""
    pyplot = matplotlib_pyplot()
    made = []
    for part in ("bits", "groups"):
        if report.curves(part):
            made.append(folder / f"training-{part}.png")
            _over_x(pyplot, report, part, made[-1])
    return made


def _scores(axis: Call, points: list[Point], how: Measure, colour: str, label: str) -> None:
    x = [int(p.setting.x) for p in points]
    means, spreads = [p.mean * how.scale for p in points], [p.spread * how.scale for p in points]
    axis.errorbar(x, means, spreads, color=colour, label=label, marker="o", markersize=3, capsize=2)


def _reference(axis: Call, p: Point, how: Measure) -> None:
    low, high = how.scale * (p.mean - p.spread), how.scale * (p.mean + p.spread)
    axis.axhspan(low, high, color="0.85", zorder=0, label="torch fp32 ± sd")
    axis.set_ylabel(f"{how.name}{how.unit}")
    axis.grid(visible=True, alpha=0.25)


def _over_x(pyplot: ModuleType, report: StudyReport, part: str, path: Path) -> None:
    """Scores, scores of wide accumulators, weights against fp32's, and how these grow: over FracBits, or K."""
    bits, rows = part == "bits", len(report.networks)
    figure, axes = pyplot.subplots(
        rows, 4, figsize=(20, 3.4 * rows + 0.6), layout="constrained", squeeze=False
    )
    figure.suptitle(
        f"{'FracBits of the accumulator' if bits else 'Products of one step'}: mean and sd of seeds"
    )
    for network, (first, near, second, time) in zip(report.networks, axes, strict=True):
        how = measure(network)
        for curve, colour in zip(report.curves(part), _COLOURS, strict=False):
            points = report.over_bits(network, curve) if bits else report.of(network, part, curve)
            if not points:
                continue
            wide = points[len(points) // 3 :] if bits else [p for p in points if np.mean(p.apart) < 1e-2]
            for axis, shown in ((first, points), (near, wide)):
                if shown:
                    _scores(axis, shown, how, colour, curve)
            x = [int(p.setting.x) for p in points]
            second.semilogy(x, [np.mean(p.apart) for p in points], "o-", markersize=3, color=colour)
            for p, style in ((points[0], ":"), (points[-1], "-")):
                label = f"{curve}, {p.setting.x}"
                time.semilogy(np.arange(1, LOOKS + 1) / LOOKS, p.progress, style, color=colour, label=label)
        for axis, title in ((first, "all"), (near, "wide" if bits else "near fp32")):
            _reference(axis, report.fp32(network), how)
            axis.set_title(f"{network}: {title}")
        second.set_title("1 − cosine of weights with fp32's")
        time.set_title("the same over training")
        for axis in (second, time):
            axis.grid(visible=True, alpha=0.25)
        for axis in (first, near, second):
            axis.set_xlabel("FracBits" if bits else "K")
            if not bits:
                axis.set_xscale("log", base=2)
        first.legend(fontsize=7)
        time.legend(fontsize=6)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
