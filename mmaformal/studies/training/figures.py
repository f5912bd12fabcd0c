"""Figures 7a, 7b and 9 of TensorGauge for what was trained here."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from mmaformal.statistics import matplotlib_pyplot
from mmaformal.studies.training.report import Measure, Point, StudyReport, measure_training
from mmaformal.torch.tensors import Call

_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")


def draw_training(report: StudyReport, folder: Path) -> list[Path]:
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
    means, errors = (
        [np.mean(p.differences) * how.scale for p in points],
        [p.error * how.scale for p in points],
    )
    axis.errorbar(x, means, errors, color=colour, label=label, marker="o", markersize=3, capsize=2)


def _over_x(pyplot: ModuleType, report: StudyReport, part: str, path: Path) -> None:
    """Scores against fp32's, those of wide ones, weights against fp32's and the widest's: over FracBits, or K."""
    bits, rows = part == "bits", len(report.networks)
    figure, axes = pyplot.subplots(
        rows, 4, figsize=(20, 3.4 * rows + 0.6), layout="constrained", squeeze=False
    )
    figure.suptitle(
        f"{'FracBits of the accumulator' if bits else 'Products of one step'}: means of seeds, with standard errors"
    )
    for network, (first, near, second, third) in zip(report.networks, axes, strict=True):
        how = measure_training(network)
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
            third.semilogy(
                x, [np.mean(p.apart_from_widest) or np.nan for p in points], "o-", markersize=3, color=colour
            )
        for axis, title in (
            (first, f"{network}: {how.name}, difference from fp32{how.unit}"),
            (near, f"the same, {'wide' if bits else 'near fp32'}"),
            (second, "1 − cosine with fp32's weights, or gradients"),
            (third, "1 − cosine with the widest accumulator's"),
        ):
            axis.set_title(title, fontsize=10)
            axis.grid(visible=True, alpha=0.25)
        for axis in (first, near, second, third):
            axis.set_xlabel("FracBits" if bits else "K")
            if not bits:
                axis.set_xscale("log", base=2)
        first.legend(fontsize=7)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
