"""The scene of a generated log: which server, GPU, ranks and machine it came from, and what `{words}` stand for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from logtriage.errors import InputError

if TYPE_CHECKING:
    from random import Random

    from logtriage.workbench.templates import Family

_PLACE = re.compile(r"\{(?:(?P<low>\d+(?:\.\d+)?)\.\.(?P<high>\d+(?:\.\d+)?)|(?P<name>[a-z][a-z0-9-]*))\}")
_START = datetime(2026, 1, 5, tzinfo=UTC)
_DAYS = 300
_DEEP = 20


class Scene:
    """Draws everything about a launch once, and keeps its clock.

    A word drawn for a name stays the same in the whole log; a range such as ``{1..9}`` is drawn each time.
    """

    def __init__(self, family: Family, shared: dict[str, Any], rng: Random) -> None:
        self.rng = rng
        self.shared = shared
        self.at: str = rng.choice(family.at) if family.at else ""
        self.version: str = rng.choice(family.versions or shared["versions"])
        gpus = [gpu for gpu in shared["gpus"] if not family.sm or gpu["sm"] in family.sm]
        gpu = rng.choice(gpus)
        self.ranks: int = rng.choice(family.ranks or shared["ranks"])
        self.rank = rng.randrange(self.ranks)
        self.tags: str = rng.choice(shared["tags"]) if self.ranks > 1 else ""
        self.time = _START + timedelta(seconds=rng.randrange(_DAYS * 86400))
        self._words: dict[str, str] = {
            "version": self.version,
            "gpu": gpu["name"],
            "sm": str(gpu["sm"]),
            "sm-dot": f"{gpu['sm'] // 10}.{gpu['sm'] % 10}",
            "major": str(gpu["sm"] // 10),
            "gib": str(gpu["gib"]),
            "tp": str(self.ranks),
            "rank": str(self.rank),
        }

    def newer_than(self, version: str) -> bool:
        """Say whether the server is of this version or newer."""
        return bool(self.shared["versions"].index(self.version) >= self.shared["versions"].index(version))

    def fill(self, text: str, depth: int = 0) -> str:
        """Replace the places of a text. Raises InputError for a name that no list of words has."""
        if depth > _DEEP:
            raise InputError(f"the words of the templates refer to each other in a circle: {text!r}")

        def drawn(match: re.Match[str]) -> str:
            name = match["name"]
            if name is None:
                return self._number(match["low"], match["high"])
            if name not in self._words:
                if name not in self.shared["words"]:
                    raise InputError(f"{{{name}}}: the templates have no such word")
                self._words[name] = self.fill(str(self.rng.choice(self.shared["words"][name])), depth + 1)
            return self._words[name]

        return _PLACE.sub(drawn, text)

    def tag(self, rank: int) -> str:
        """Return the tags of a rank as they stand behind the time, such as `` TP3``."""
        return self.tags.replace("#", str(rank))

    def wait(self, seconds: float) -> None:
        """Let the clock run."""
        self.time += timedelta(seconds=seconds)

    def _number(self, low: str, high: str) -> str:
        decimals = len(low.partition(".")[2])
        if not decimals:
            return str(self.rng.randint(int(low), int(high)))
        scale = 10**decimals
        return f"{self.rng.randint(round(float(low) * scale), round(float(high) * scale)) / scale:.{decimals}f}"
