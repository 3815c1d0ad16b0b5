"""Draws what is taken for what: a matrix of the labels that were wanted and those that were given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.errors import InputError, TriageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_INCHES = 0.42


def confusion_matrix(counts: Mapping[str, Mapping[str, int]], path: str) -> None:
    """Write a picture (PNG or SVG, by the ending of `path`) of the counts by wanted and given label.

    Raises InputError where matplotlib is missing, TriageError where the file cannot be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(f"a picture needs matplotlib: pip install 'logtriage[train]' ({error})") from error
    labels = sorted({*counts, *(label for row in counts.values() for label in row)})
    size = 3 + _INCHES * len(labels)
    figure = Figure(figsize=(size, size), layout="tight")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = [
        [counts.get(wanted, {}).get(given, 0) / max(1, sum(counts.get(wanted, {}).values())) for given in labels]
        for wanted in labels
    ]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, wanted in enumerate(labels):
        for column, given in enumerate(labels):
            if count := counts.get(wanted, {}).get(given, 0):
                colour = "white" if shares[row][column] > 0.5 else "black"
                axes.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=7)
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel("label given")
    axes.set_ylabel("label wanted")
    try:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.endswith(".svg") else None)
    except (OSError, ValueError) as error:
        raise TriageError(f"{path}: the picture cannot be written: {error}") from error
