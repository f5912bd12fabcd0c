"""The unit-level study as a table and a figure: what is measured, what is proved, and what the paper says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmaformal.statistics import matplotlib_pyplot
from mmaformal.studies.rows import markdown
from mmaformal.studies.unit_study.errors import (
    METRICS,
    PAPER,
    PAPER_BELOW,
    DatapathErrors,
    below_from,
    by_kind_and_k,
    settled_from,
    within_from,
)

#: distances of the variance retention ratio from 1
NEAR = (1e-4, 1e-5)
_TITLES = {
    "mse": "mean of e²",
    "variance_of_squared_error": "variance of e²",
    "variance_retention_ratio": "|variance retention ratio − 1|",
}

KindAndK = tuple[str, int]  #: kind and K


def cells(rows: Sequence[DatapathErrors]) -> list[int | None]:
    """Return of one curve from which FracBits on MSE is settled, and below the paper's magnitude; so of the variance
    of e²; and the variance retention ratio near 1."""
    found: list[int | None] = []
    for metric, bound in PAPER_BELOW.items():
        found += [below_from(rows, metric, bound), settled_from(rows, metric)]
    return found + [within_from(rows, distance) for distance in NEAR]


def curves(rows: Sequence[DatapathErrors], derived: Mapping[KindAndK, str]) -> list[dict[str, object]]:
    """A dict of plain values for the paper, and for each curve."""
    below = [
        f"{name} < {PAPER_BELOW[metric]:.0e}"
        for metric, name in (("mse", "MSE"), ("variance_of_squared_error", "var e²"))
    ]
    head = [
        "datapath", "K", below[0], "MSE settled", below[1], "var e² settled",
        *(f"VRR within {distance:.0e}" for distance in NEAR), "alignment below ½ ulp, proved", "√MSE at the last",
    ]  # fmt: skip
    mse, variance, ratio = PAPER.values()
    paper: list[object] = ["paper", "", mse, mse, variance, variance, ratio, "", "", ""]
    lines: list[list[object]] = [paper]
    for (kind, k), own in by_kind_and_k(rows).items():
        last = max(own, key=lambda row: row.frac_bits)
        lines.append([kind, k, *cells(own), derived.get((kind, k), "–"), f"{last.mse**0.5:.2e}"])
    return [dict(zip(head, line, strict=True)) for line in lines]


def unit_table(rows: Sequence[DatapathErrors], derived: Mapping[KindAndK, str]) -> str:
    """Returns the table in Markdown."""
    told = curves(rows, derived)
    return markdown([*told[0]], (["–" if x is None else x for x in each.values()] for each in told))


def draw_unit_study(
    rows: Sequence[DatapathErrors], derived: Mapping[KindAndK, int], path: Path, *, title: str
) -> None:
    """A graph for each metric over FracBits; lines where the paper calls it stable, and from where alignment is proved
    to be below half an ulp.  Raises ImportError, saying how to install it, without matplotlib."""
    pyplot = matplotlib_pyplot()
    figure, axes = pyplot.subplots(1, len(METRICS), figsize=(13, 4.2), layout="constrained")
    curves, styles = by_kind_and_k(rows), {"fda": "-", "sda": "--"}
    groups = sorted({k for _, k in curves})
    colours = {k: pyplot.get_cmap("viridis")(i / max(len(groups) - 1, 1) * 0.9) for i, k in enumerate(groups)}
    for metric, axis in zip(METRICS, axes, strict=True):
        for (kind, k), own in curves.items():
            ordered = sorted(own, key=lambda row: row.frac_bits)
            y = [getattr(row, metric) for row in ordered]
            if metric == "variance_retention_ratio":
                y = [abs(value - 1) for value in y]
            axis.semilogy(
                [row.frac_bits for row in ordered], y, styles[kind], color=colours[k], linewidth=1.3
            )
        axis.axvline(PAPER[metric], color="tab:red", linewidth=1)
        if metric in PAPER_BELOW:
            axis.axhline(PAPER_BELOW[metric], color="tab:red", linewidth=0.7, linestyle=":")
        for F in sorted(set(derived.values())):
            axis.axvline(F, color="0.5", linewidth=0.9, linestyle="-.")
        axis.set_title(_TITLES[metric], fontsize=10)
        axis.set_xlabel("FracBits")
        axis.grid(visible=True, which="major", alpha=0.25)
    handles = [pyplot.Line2D([], [], color=colours[k], label=f"K = {k}") for k in groups]
    handles += [
        pyplot.Line2D([], [], color="k", linestyle=style, label=kind) for kind, style in styles.items()
    ]
    handles += [
        pyplot.Line2D([], [], color="tab:red", label="the paper's"),
        pyplot.Line2D([], [], color="0.5", linestyle="-.", label="alignment < ½ ulp, proved"),
    ]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
