"""Takes apart what several containers, tasks or processes printed into one log: one after the other, each in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.records import Line


def apart(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of one file ordered by origin, if there are several origins; `row` then counts within each.

    A traceback that other containers' lines were printed into is whole again. Where lines between two of one origin
    were not kept, their rows are no neighbours.
    """
    places = {origin: place for place, origin in enumerate(dict.fromkeys(line.origin for line in lines))}
    if len(places) < 2:
        return list(lines)
    counted: list[Line] = []
    rows: dict[str, tuple[int, int]] = {}
    holes = 0
    before = lines[0].row
    for line in lines:
        holes += line.row > before + 1
        is_new_row = line.row != before or line.origin not in rows
        before = line.row
        row, seen = rows.get(line.origin, (0, holes))
        row += is_new_row + (holes > seen)
        rows[line.origin] = (row, holes)
        counted.append(line._replace(row=row))
    return sorted(counted, key=lambda line: places[line.origin])
