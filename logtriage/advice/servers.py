"""Pure queries about a server's flags: choices by version, the kernel behind a value, where that kernel works.

In: the compiled knowledge of ``rules/servers`` and a `Setting`. Out: answers with their source. What is not known is
answered with "unknown", an empty set or None; nothing is guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from logtriage.advice.evidence import CONFIDENCE, Candidate, Status, at, by_flag, together
from logtriage.engine.conditions import holds, in_range, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from logtriage.advice.evidence import Setting


class Servers:
    """The knowledge about one server, ready to be asked."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._flags: Mapping[str, Any] = data.get("flags", {})
        self._libraries = {item["id"]: item for item in data.get("kernels", ())}
        self._same_as: Mapping[str, str] = data.get("same_as", {})
        self._values, self._autos, self._matrix, self._rankings = (
            by_flag(data.get(part, ())) for part in ("values", "auto", "matrix", "ranking")
        )
        self._found: dict[Any, frozenset[str]] = {}
        self._chosen: dict[Any, tuple[str, ...]] = {}
        self.versions: Sequence[str] = data.get("versions", ())
        self.components: Mapping[str, str] = data.get("components", {})
        self.broken_by: Mapping[str, str] = data.get("broken_by", {})
        self.backends: Sequence[str] = tuple(self._matrix)
        """The flags that select kernels of which something is known."""
        self.libraries = frozenset(self._libraries)
        """The ids of the kernel libraries."""

    # ---- flags and versions

    def canonical(self, flag: str) -> str:
        """Return the name of a flag that reports use."""
        return str(self._data.get("aliases", {}).get(flag, flag))

    def flags(self, version: str | None) -> list[str]:
        """Return the names of all flags of a version (of all versions, if it is not known)."""
        if version is None:
            return list(self._flags)
        return [flag for flag in self._flags if self.exists(flag, version)]

    def exists(self, flag: str, version: str | None) -> bool | None:
        """Return whether a version has a flag; None if the flag or the version is not known."""
        if flag not in self._flags:
            return None
        versions = self._flags[flag].get("versions", "")
        if version is None:
            return None if versions else True
        return not versions or in_range(version, versions)

    def covers(self, version: str) -> bool:
        """Return whether a version lies between the oldest and the newest whose source was read."""
        own = version_key(version)[:4]
        return bool(self.versions) and version_key(self.versions[0])[:4] <= own <= version_key(self.versions[-1])[:4]

    def choices(self, flag: str, version: str | None) -> tuple[str, ...]:
        """Return the values that a flag takes; those that all versions have, if the version is not known.

        Of a version between two whose source was read, what both have. Empty for a flag without fixed choices.
        """
        if flag not in self._flags:
            return ()
        if (flag, version) not in self._chosen:
            self._chosen[flag, version] = self._choices(flag, version)
        return self._chosen[flag, version]

    def default(self, flag: str, version: str | None) -> Any:
        """Return the value that a flag has if it is not given; None where it is decided at launch or not known."""
        found = None
        for since, value in (self._flags.get(flag, {}).get("defaults") or {}).items():
            if version is not None and version_key(version) >= version_key(since):
                found = value
        return found

    def is_switch(self, flag: str) -> bool:
        """Return whether a flag takes no value."""
        entry = self._flags.get(flag, {})
        defaults = [value for value in (entry.get("defaults") or {}).values() if value is not None]
        return not entry.get("choices") and bool(defaults) and all(isinstance(value, bool) for value in defaults)

    def renamed(self, flag: str, version: str | None) -> str | None:
        """Return what a flag is called in a version that has dropped its name, else None."""
        return self._renamed(self._data.get("renames", ()), version, old=flag)

    def value_renamed(self, flag: str, value: str, version: str | None) -> str | None:
        """Return what a value is called in a version that has dropped its name, else None."""
        return self._renamed(self._data.get("value_renames", ()), version, flag=flag, old=value)

    def closest(self, word: str, known: Iterable[str], alike: float = 0.75) -> str | None:
        """Return the known word that a misspelt one may have meant, or None."""
        from difflib import get_close_matches

        return next(iter(get_close_matches(word, list(known), 1, alike)), None)

    def memory(self, label: str, version: str | None) -> list[Mapping[str, Any]]:
        """Return the flags that tune memory for a label, the least invasive first."""
        entries = [item for item in self._data.get("memory", ()) if label in item["labels"]]
        return [item for item in entries if version is None or in_range(version, item.get("versions", ""))]

    # ---- models

    def format_of(self, quantization: str | None) -> str | None:
        """Return the format of the weights that a value of ``--quantization`` stands for, or None."""
        return self._data.get("formats", {}).get(quantization) if quantization else None

    def format_named(self, model: str | None) -> str | None:
        """Return the format of the weights that a model's name tells, or None."""
        named = self._data.get("format_names", {})
        return next((found for found in named if _fits(named[found], model)), None)

    def format_behind(self, flag: str, value: str) -> str | None:
        """Return the format of the weights, if a value serves only one: its kernels stand in rows of no other."""
        kernels = {entry["kernels"] for entry in self._values.get(self._base(flag), ()) if
                   value in entry["values"] and "kernels" in entry}  # fmt: skip
        rows = [row for row in self._matrix.get(self._base(flag), ()) if row["kernels"] in kernels]
        formats = {row.get("format") for row in rows if any(cell["status"] == "works" for cell in row["cells"])}
        return str(formats.pop()) if len(formats) == 1 and None not in formats else None

    def is_moe(self, model: str | None) -> bool:
        """Return whether a model's name says that it is a mixture of experts."""
        return _fits(self._data.get("moe_names", ()), model)

    # ---- kernels

    def kernels(self, flag: str, value: str | None, setting: Setting) -> frozenset[str]:
        """Return the kernel libraries that a value may run: one where all is known, none where nothing is.

        `value` None is a flag that is not given. A value of which no library is known is a kernel of its own.
        """
        if value is None:
            default = self.default(flag, setting.version)
            value = str(default) if default is not None else "auto"
        if (flag, value, setting) not in self._found:
            self._found[flag, value, setting] = self._kernels(flag, value, setting)
        return self._found[flag, value, setting]

    def auto(self, flag: str, setting: Setting) -> list[Mapping[str, Any]]:
        """Return what ``auto`` may mean: entries with `value` or `kernels`, `model` and `note`; several if unclear."""
        entries = self._autos.get(self._base(flag), ())
        return [item for item in entries if holds(item.get("when", {}), setting.facts()) is not False]

    def equivalent(self, flag: str, value: str, setting: Setting) -> frozenset[str]:
        """Return the values of a flag that run, or may run, the same code as `value` (it included).

        `auto` counts only where it is known what it runs.
        """
        own = self.kernels(flag, value, setting)
        same = {
            other
            for other in self.choices(flag, setting.version)
            if (kernels := self.kernels(flag, other, setting)) & own
            and ("auto" not in (value, other) or kernels == own)
        }
        for entry in self._data.get("equivalent", ()):
            fits = entry["flag"] == self._base(flag) and value in entry["values"]
            if fits and holds(entry["when"], setting.facts()) is not False:
                same.update(entry["values"])
        return frozenset(same | {value})

    def library(self, kernels: str) -> Mapping[str, Any]:
        """Return the entry of a kernel library: `name`, `family`, `only`, `needs`, `repacks`, `source`."""
        return self._libraries.get(kernels) or {"id": kernels, "name": kernels, "family": kernels, "needs": ()}

    def status(self, flag: str, kernels: str, setting: Setting) -> Status:
        """Return whether a kernel library works under a flag in a setting.

        Where the GPU or the format is not known, it is what holds for all of them; "works" of low confidence where it
        works on some.
        """
        only = self.library(kernels).get("only")
        if only and setting.sm is not None and setting.sm not in only:
            names = ", ".join(f"SM{sm}" for sm in only)
            source = "; ".join(self.library(kernels)["source"])
            return Status("refused", CONFIDENCE["high"], source, f"its kernels exist for {names} only")
        rows = [row for row in self._rows(flag, setting) if row["kernels"] == kernels]
        sms = self._data.get("sms", ()) if setting.sm is None else (setting.sm,)
        return together([at(row, sm, setting) for row in rows for sm in sms if sm not in setting.not_sm])

    def status_of(self, flag: str, value: str | None, setting: Setting) -> Status:
        """Return what is known of the kernels that a value may run; "unknown" where they are not known."""
        found = self.kernels(flag, value, setting)
        return together([self.status(flag, kernels, setting) for kernels in sorted(found)])

    def for_other_platform(self, flag: str, value: str, setting: Setting) -> str | None:
        """Return the platform that a value is for, if it is not the setting's (CUDA if that is not known)."""
        entry = self._entry(flag, value, "platform")
        return str(entry["platform"]) if entry and entry["platform"] != (setting.platform or "cuda") else None

    def model_of(self, flag: str, value: str | None) -> str | None:
        """Return the kind of model that a value is for, or None for any."""
        entry = self._entry(flag, value, "model") if value else None
        return str(entry["model"]) if entry else None

    def candidates(self, flag: str, setting: Setting, model: str | None = None) -> list[Candidate]:
        """Return the values of a flag that may work in a setting, by public evidence, the best first.

        A value of which nobody has said whether it works comes last, and only where the setting is known.
        `model` is the kind of model that is served, if it is known: values for other kinds are left out.
        """
        found: list[Candidate] = []
        if not setting.is_nvidia:
            return found
        rows = {row["kernels"] for row in self._rows(flag, setting)}
        for value in self.choices(flag, setting.version):
            kernels = self.kernels(flag, value, setting)
            wanted = self.model_of(flag, value)
            if value in ("auto", "none") or (wanted and wanted != model) or not kernels <= rows:
                continue
            if self.for_other_platform(flag, value, setting):
                continue
            of_each = {name: self.status(flag, name, setting) for name in sorted(kernels, reverse=True)}
            status = together(list(of_each.values()))
            if status.status == "works" or (status.status == "unknown" and setting.is_known):
                first = max(of_each, key=lambda name: (of_each[name].status == "works", of_each[name].confidence))
                found.append(Candidate(value, first, status))
        weights = self._weights(flag, setting)
        return sorted(found, key=lambda c: (c.status.status != "works", -weights.get(c.value, 0), -c.status.confidence))

    # ---- private

    def _base(self, flag: str) -> str:
        return self._same_as.get(flag, flag)

    def _choices(self, flag: str, version: str | None) -> tuple[str, ...]:
        own = self._flags[flag].get("versions", "")
        having = [known for known in self.versions if not own or in_range(known, own)]
        if version is not None and self.exists(flag, version) is False:
            return ()
        sets = [self._choices_at(flag, known) for known in self._around(version, having)]
        return tuple(value for value in (sets[0] if sets else ()) if all(value in other for other in sets[1:]))

    def _kernels(self, flag: str, value: str, setting: Setting) -> frozenset[str]:
        found: set[str] = set()
        for entry in self._values.get(self._base(flag), ()):
            if value not in entry["values"] or "kernels" not in entry:
                continue
            answer = holds(entry.get("when", {}), setting.facts())
            if answer is not False:
                found.add(entry["kernels"])
            if answer:
                return frozenset(found)
        if value != "auto":
            return frozenset(found or {f"{self._base(flag)}={value}"})
        return frozenset(found.union(*(self._of_auto(flag, entry, setting) for entry in self.auto(flag, setting))))

    def _around(self, version: str | None, having: Sequence[str]) -> list[str]:
        if version is None:
            return list(having)
        own = version_key(version)
        exact = [known for known in having if version_key(known)[:4] == own[:4] and own[4] >= 0]
        if exact:
            return exact[:1]
        before = [known for known in having if version_key(known) < own]
        after = [known for known in having if version_key(known) > own]
        return [*before[-1:], *after[:1]]

    def _choices_at(self, flag: str, version: str) -> list[str]:
        entry = self._flags[flag]
        found = list(entry.get("choices", ()))
        for step in entry.get("history", ()):
            if version_key(step["since"]) <= version_key(version):
                found = [value for value in found if value not in step.get("removed", ())] + step.get("added", [])
        return found

    def _renamed(self, entries: Iterable[Mapping[str, Any]], version: str | None, **wanted: str) -> str | None:
        for entry in entries:
            gone = entry.get("removed_since")
            if all(entry.get(key) == value for key, value in wanted.items()) and version and gone:
                return entry.get("new") if version_key(version) >= version_key(gone) else None
        return None

    def _of_auto(self, flag: str, entry: Mapping[str, Any], setting: Setting) -> frozenset[str]:
        return frozenset([entry["kernels"]]) if "kernels" in entry else self.kernels(flag, entry["value"], setting)

    def _rows(self, flag: str, setting: Setting) -> Iterator[Mapping[str, Any]]:
        for row in self._matrix.get(self._base(flag), ()):
            if setting.format in (None, row.get("format")) or "format" not in row:
                yield row

    def _entry(self, flag: str, value: str, key: str) -> Mapping[str, Any] | None:
        entries = self._values.get(self._base(flag), ())
        return next((item for item in entries if value in item["values"] and key in item), None)

    def _weights(self, flag: str, setting: Setting) -> dict[str, float]:
        """How often and how far in front a value stands in the rankings that may apply."""
        weights: dict[str, float] = {}
        for entry in self._rankings.get(self._base(flag), ()):
            sms = [sm for sm in entry.get("sm") or self._data["sms"] if sm not in setting.not_sm]
            if setting.sm is not None and setting.sm not in sms:
                continue
            if setting.format is not None and entry.get("format", setting.format) != setting.format:
                continue
            for place, value in enumerate(entry["order"]):
                weights[value] = weights.get(value, 0) + (1 if setting.sm else len(sms)) / (1 + place)
        return weights


def _fits(names: Iterable[str], model: str | None) -> bool:
    return any(re.search(name, model or "", re.IGNORECASE) for name in names)
