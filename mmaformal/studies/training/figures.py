"""Figures 7, 8 and 9 of TensorGauge for what was trained here."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from mmaformal.statistics import matplotlib_pyplot
from mmaformal.studies.training.report import Point, StudyReport
from mmaformal.studies.training.runs import LOOKS, Job
from mmaformal.studies.training.sweep import BITS, GROUPS, with_bits
from mmaformal.torch.tensors import Call

_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")


def draw(report: StudyReport, folder: Path) -> list[Path]:
    """A figure for each part; returns the files.  Raises ImportError, saying how to install it, without matplotlib."""
    pyplot = matplotlib_pyplot()
    made = []
    for part, figure in (("bits", _bits), ("weights", _weights), ("groups", _groups), ("bars", _bars)):
        path = folder / f"training-{part}.png"
        if figure(pyplot, report, path):
            made.append(path)
    return made


def _grid(pyplot: ModuleType, report: StudyReport, columns: int, title: str) -> tuple[Call, Call]:
    rows = len(report.networks)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5 * columns, 3.4 * rows + 0.6), layout="constrained", squeeze=False
    )
    figure.suptitle(title)
    return figure, axes


def _save(pyplot: ModuleType, figure: Call, path: Path) -> bool:
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def _accuracy(axis: Call, points: list[Point], colour: str, label: str) -> None:
    x = [int(p.setting.x) for p in points]
    axis.errorbar(
        x, [100 * p.mean for p in points], [100 * p.spread for p in points], color=colour, label=label
    )


def _apart(plot: Call, points: list[Point], colour: str) -> None:
    x = [int(p.setting.x) for p in points]
    plot(x, [np.mean(p.apart) for p in points], "o-", markersize=3, color=colour)


def _reference(axis: Call, p: Point) -> None:
    low, high = 100 * (p.mean - p.spread), 100 * (p.mean + p.spread)
    axis.axhspan(low, high, color="0.85", zorder=0, label="torch fp32 ± sd")
    axis.set_ylabel("accuracy, %")
    axis.grid(visible=True, alpha=0.25)


def _bits(pyplot: ModuleType, report: StudyReport, path: Path) -> bool:
    """Accuracy, and weights against fp32's, over FracBits."""
    if not report.curves("bits"):
        return False
    figure, axes = _grid(
        pyplot, report, 3, "FracBits of the accumulator: mean and standard deviation of seeds"
    )
    for network, (first, near, second) in zip(report.networks, axes, strict=True):
        for curve, colour in zip(report.curves("bits"), _COLOURS, strict=False):
            points = report.of(network, "bits", curve)
            _accuracy(first, points, colour, curve)
            wide = [p for p in points if int(p.setting.x) >= 8]
            _accuracy(near, wide, colour, curve)
            _apart(second.semilogy, points, colour)
        for axis in (first, near):
            _reference(axis, report.fp32(network))
        first.set_title(f"{network}: all")
        near.set_title(f"{network}: from 8 bits on")
        second.set_title(f"{network}: 1 − cosine of weights with fp32's")
        second.grid(visible=True, alpha=0.25)
        first.legend(fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("FracBits")
    return _save(pyplot, figure, path)


def _weights(pyplot: ModuleType, report: StudyReport, path: Path) -> bool:
    """Fig. 7c, d: each two of the FracBits of fp16; layers; and how it grows while training goes on."""
    if "fp16" not in report.curves("bits"):
        return False
    jobs = {
        bits: [Job(each, with_bits("fp16", bits), 0) for each in report.networks] for bits in BITS["fp16"]
    }
    bits = [each for each, own in jobs.items() if all(job in report.results for job in own)]
    if len(bits) < 2:
        return False
    figure, axes = _grid(pyplot, report, 3, "fp16: weights, 1 − cosine")
    for network, (pairs, layers, time) in zip(report.networks, axes, strict=True):
        found = report.pairwise(network, [with_bits("fp16", each) for each in bits])
        np.fill_diagonal(found, np.nan)
        image = pairs.imshow(np.log10(found), cmap="viridis")
        figure.colorbar(image, ax=pairs, label="log10(1 − cos)")
        pairs.set_xticks(range(len(bits)), map(str, bits), fontsize=7)
        pairs.set_yticks(range(len(bits)), map(str, bits), fontsize=7)
        pairs.set_title(f"{network}: pairs of FracBits, seed 0")
        shown = [p for p in report.of(network, "bits", "fp16") if int(p.setting.x) in (4, 8, 12, 16, 24)]
        for p, colour in zip(shown, _COLOURS, strict=False):
            label = f"FracBits {p.setting.x}"
            layers.semilogy([x for _, x in p.layers], "o-", markersize=3, color=colour, label=label)
            time.semilogy(np.arange(1, LOOKS + 1) / LOOKS, p.progress, "o-", markersize=3, color=colour)
        names = [name.removesuffix(".weight") for name, _ in shown[0].layers] if shown else []
        layers.set_xticks(range(len(names)), names, rotation=45, fontsize=7, ha="right")
        layers.set_title(f"{network}: layers, from input to output")
        time.set_title(f"{network}: over training")
        layers.legend(fontsize=8)
    axes[-1][2].set_xlabel("part of the training")
    return _save(pyplot, figure, path)


def _groups(pyplot: ModuleType, report: StudyReport, path: Path) -> bool:
    """Fig. 7b: accuracy and weights over K."""
    if not report.curves("groups"):
        return False
    figure, axes = _grid(pyplot, report, 2, "K, products of one step (fp16)")
    ks = GROUPS["fda"]
    for network, (first, second) in zip(report.networks, axes, strict=True):
        for curve, colour in zip(report.curves("groups"), _COLOURS, strict=False):
            points = report.of(network, "groups", curve)
            _accuracy(first, points, colour, curve)
            _apart(second.loglog, points, colour)
        _reference(first, report.fp32(network))
        for axis in (first, second):
            axis.set_xscale("log", base=2)
            axis.set_xticks(ks, map(str, ks))
        first.set_title(network)
        second.set_title(f"{network}: 1 − cosine of weights with fp32's")
        second.grid(visible=True, alpha=0.25)
        first.legend(fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("K")
    return _save(pyplot, figure, path)


def _bars(pyplot: ModuleType, report: StudyReport, path: Path) -> bool:
    """Orders and units: every seed's difference of accuracy from fp32, and weights."""
    if not report.curves("orders") + report.curves("units"):
        return False
    figure, axes = _grid(pyplot, report, 2, "Orders and units: each seed against torch's fp32 of that seed")
    for network, (first, second) in zip(report.networks, axes, strict=True):
        points = report.of(network, "orders") + report.of(network, "units")
        names = [f"{p.setting.curve} {p.setting.x}".strip() for p in points]
        for place, p in enumerate(points):
            first.plot(
                [100 * x for x in p.differences],
                [place] * len(p.differences),
                "o",
                color="tab:blue",
                alpha=0.4,
            )
            first.plot([100 * np.mean(p.differences)], [place], "k|", markersize=14)
            second.semilogx(p.apart, [place] * len(p.apart), "o", color="tab:orange", alpha=0.5)
        first.axvline(0, color="0.6", linewidth=0.8)
        first.set_yticks(range(len(names)), names, fontsize=7)
        second.set_yticks([])
        for axis in (first, second):
            axis.invert_yaxis()
            axis.grid(visible=True, alpha=0.25)
        first.set_title(f"{network}: accuracy, difference in %")
        second.set_title(f"{network}: 1 − cosine of weights")
    return _save(pyplot, figure, path)
