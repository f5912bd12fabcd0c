"""Errors of Model 1 drawn from measured rows, as Figures 5.1 and 5.2 are, the published curves beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmaformal.statistics import matplotlib_pyplot
from mmaformal.studies.narrow_range.bounds import Symbols, probabilistic
from mmaformal.studies.narrow_range.experiments import Combination, CombinationErrors
from mmaformal.studies.narrow_range.model import MOST_WORDS
from mmaformal.studies.narrow_range.published import Curve, CurveComparison

_COLOURS = ("tab:blue", "tab:orange", "tab:green")


def draw_figures(
    title: str,
    rows: Sequence[CombinationErrors],
    comparisons: Mapping[Combination, CurveComparison],
    path: Path,
) -> None:
    """One graph for each pair of formats, without subnormals on the left and with them on the right.

    Raises ImportError, saying how to install it, without matplotlib.
    """
    pyplot = matplotlib_pyplot()
    pairs = list(dict.fromkeys((row.input, row.accumulation) for row in rows))
    drawn, axes = pyplot.subplots(
        len(pairs),
        2,
        figsize=(11, 3.6 * len(pairs) + 1),
        sharex=True,
        sharey="row",
        layout="constrained",
        squeeze=False,
    )
    for (one, other), beside in zip(pairs, axes, strict=True):
        for subnormals, axis in zip((False, True), beside, strict=True):
            for words in range(1, MOST_WORDS + 1):
                each = Combination(one, other, subnormals, words)
                own = [row for row in rows if row.combination == each and not row.overflowed]
                if not own:
                    continue
                mine, colour = Curve.of(own), _COLOURS[words - 1]
                axis.loglog(mine.n, mine.error, color=colour, linewidth=1.6, label=f"p = {words}")
                axis.loglog(mine.n, mine.error_unbounded, color=colour, linewidth=1, linestyle=":")
                if each in comparisons:
                    theirs = comparisons[each].published
                    axis.loglog(theirs.n, theirs.error, "o", color=colour, markersize=2.5, alpha=0.45)
                likely = [float(probabilistic(Symbols.of(each.model, int(n), words))) for n in mine.n]
                axis.loglog(mine.n, likely, color=colour, linewidth=0.8, linestyle="--", alpha=0.6)
            axis.set_title(f"{one}, sums in {other}, subnormals {'on' if subnormals else 'off'}", fontsize=10)
            axis.grid(visible=True, which="major", alpha=0.25)
            if other == "fp16":
                axis.axvline(65504, color="0.4", linewidth=0.8)
        beside[0].set_ylabel("‖Ĉ − AB‖∞ / (‖A‖∞ ‖B‖∞)")
    for axis in axes[-1]:
        axis.set_xlabel("n")
    handles = [pyplot.Line2D([], [], color=c, label=f"p = {p}") for p, c in enumerate(_COLOURS, 1)]
    handles += [
        pyplot.Line2D([], [], color="k", linestyle=":", label="exponents without limits"),
        pyplot.Line2D([], [], color="k", linestyle="--", linewidth=0.8, label="(p + 1)u^p + √n·U"),
    ]
    if comparisons:
        handles.append(
            pyplot.Line2D([], [], color="k", marker="o", linestyle="", markersize=3, label="published")
        )
    if any(other == "fp16" for _, other in pairs):
        handles.append(pyplot.Line2D([], [], color="0.4", linewidth=0.8, label="n = 65504"))
    drawn.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    drawn.suptitle(f"{title}: errors of Model 1")
    drawn.savefig(path, dpi=110)
    pyplot.close(drawn)
