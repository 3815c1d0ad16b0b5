"""The user's own command with changes: wrapper, environment, quoting and redirection stay as they were.

In: a launch and changes. Out: the words of the server's command and the text to paste. Where the line that showed the
command is known it is edited in place and read again to check the result; else the text is put together from the parts.
Secrets are left in: every output takes them out last.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.advice.hints import has_gap
from logtriage.engine.launch import spec_of
from logtriage.intake.launch_command import FLAG, SHELLS, canonical, find_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.intake.launch_command import LaunchSpec
    from logtriage.records import Change, Launch

_PLAIN = r"[\w@%+=:,./~^-]+"
_ARGUMENTS = r"\s|\$\{?[@*\d]"
_OPERATOR = r"&&|\|[|&]?|;|&|\n"
_TARGET = r"(?:[12&]?>{1,2}\|?\s*|\btee\s+(?:-a\s+)?)(?P<file>[^\s;|&<>]+)"


def render(launch: Launch, changes: Sequence[Change], rules: RuleSet) -> tuple[tuple[str, ...], str] | None:
    """Return the words of the changed command and its text, or None where a change cannot be made to it.

    None as well where no command is known, where a change names only a direction or a value that was not filled, or
    where a variable would have to be set inside a wrapper.
    """
    spec = spec_of(rules)
    if launch.command is None or not all(change.is_complete for change in changes):
        return None
    if any(has_gap(str(change.new)) for change in changes if not change.removed):
        return None
    flags = [change for change in changes if change.flag.startswith("-")]
    env = {change.flag: str(change.new) for change in changes if not change.flag.startswith("-")}
    if env and launch.wrapper:
        return None
    words = list(launch.command)
    for change in flags:
        words = _changed(words, change, spec)
    text = None if env else _edited(launch, flags, words, spec)
    return tuple(words), text or _composed(launch.replace(env={**launch.env, **env}), words)


def redirect_target(launch: Launch) -> str | None:
    """Return the file that the command writes its output to, or None."""
    found = [match["file"].strip("'\"") for match in re.finditer(_TARGET, launch.redirect)]
    return next((name for name in found if not name.startswith("/dev/")), None)


def _changed(words: list[str], change: Change, spec: LaunchSpec) -> list[str]:
    """Replace the value of a flag wherever it stands (the last one counts), add it at the end, or take it out."""
    value = [] if change.new == "true" else str(change.new).split(" ")
    result: list[str] = []
    place = 0
    done = False
    while place < len(words):
        word = words[place]
        place += 1
        if not re.fullmatch(FLAG, word) or canonical(word, spec) != change.flag:
            result.append(word)
            continue
        end = place
        while end < len(words) and not re.fullmatch(FLAG, words[end]):
            end += 1
        if change.removed:
            place = place if "=" in word else end
            continue
        name = word.partition("=")[0]
        new = [f"{name}={' '.join(value)}"] if "=" in word and value else [name, *value]
        result += [*new, *(words[place:end] if "=" in word else [])]
        place = end
        done = True
    return result if done or change.removed else [*result, change.flag, *value]


def _edited(launch: Launch, changes: Sequence[Change], words: Sequence[str], spec: LaunchSpec) -> str | None:
    """The line that showed the command, changed in place; None where that does not give exactly `words`."""
    assert launch.command is not None  # noqa: S101 - checked by render
    if launch.text is None:
        return None
    text = launch.text
    firsts = (f"{next(iter(launch.env), '')}=" if launch.env else "", *launch.wrapper[:1], launch.command[0])
    starts = [text.find(first) for first in firsts if first and text.find(first) >= 0]
    text = text[min(starts, default=0) :].strip()
    for change in changes:
        changed = _edit(text, change, launch.command, spec)
        if changed is None:
            return None
        text = changed
    found = find_command(text, spec)
    kept = found is not None and (found.words, found.wrapper, found.env, found.redirect) == (
        tuple(words), launch.wrapper, launch.env, launch.redirect,
    )  # fmt: skip
    return text if kept else None


def _edit(text: str, change: Change, words: Sequence[str], spec: LaunchSpec) -> str | None:
    value = "" if change.new == "true" else str(change.new)
    if value and not re.fullmatch(_PLAIN, value):
        return None
    given = (word.partition("=")[0] for word in words if re.fullmatch(FLAG, word))
    names = {name for name in given if canonical(name, spec) == change.flag}
    if names:
        written = "|".join(re.escape(name) for name in sorted(names))
        if change.removed:
            return re.sub(rf"[ \t]+(?:{written})(?:=\S+|[ \t]+(?![-\\;|&<>#)])[^\s;|&<>)]+)?(?=[\s;|&<>)]|$)", "", text)
        if not value:
            return text
        pattern = rf"(?<!\S)(?P<flag>{written})(?P<gap>=|[ \t]+(?:\\\r?\n[ \t]*)?)(?P<quote>[\"']?)[^\s\"']+(?P=quote)"
        return re.sub(pattern, lambda match: f"{match['flag']}{match['gap']}{value}", text)
    added = f" {change.flag} {value}".rstrip()
    last = words[-1]
    place = text.rfind(last)
    if place >= 0 and re.fullmatch(_PLAIN, last) and re.match(r"[\s'\"]|$", text[place + len(last) :]):
        return text[: place + len(last)] + added + text[place + len(last) :]
    return None


def _composed(launch: Launch, words: Sequence[str]) -> str:
    """The command put together from its parts; what a shell gets as one word is quoted as one word."""
    inner = " ".join(_quoted(word) for word in words)
    wrapper = list(launch.wrapper)
    script = _script(wrapper)
    outer = _text_of_shell(wrapper) if script is None else None
    env = [f"{name}={_quoted(value)}" for name, value in launch.env.items() if not _holds(wrapper, name, value)]
    if outer is None:
        return " ".join(part for part in (*_with_env(wrapper, env, script), inner, launch.redirect) if part)
    nested = _single(" ".join([*_with_env(wrapper[outer:], env), inner]))
    return " ".join(
        part for part in (*(_shell_word(word) for word in wrapper[:outer]), nested, launch.redirect) if part
    )


def _with_env(words: Sequence[str], env: Sequence[str], script: int | None = None) -> list[str]:
    """Words in front of the command, with the variables in front of the last simple command among them.

    A script among them stays as it was: its variables are for the shell that reads it.
    """
    place = max((index + 1 for index, word in enumerate(words) if re.fullmatch(_OPERATOR, word)), default=0)
    written = [_single(word) if index == script else _shell_word(word) for index, word in enumerate(words)]
    return [*written[:place], *env, *written[place:]]


def _script(wrapper: Sequence[str]) -> int | None:
    """Where in a wrapper a script stands that gets the command as arguments (`bash -c 'exec "$@"' bash …`), or None.

    Of a script that holds the command itself, the wrapper has single words, and operators between them.
    """
    shell = next((index for index, word in enumerate(wrapper) if word.rpartition("/")[2] in SHELLS), len(wrapper))
    for place in range(shell + 2, len(wrapper)):
        if re.fullmatch(r"-\w*c", wrapper[place - 1]) and re.search(_ARGUMENTS, wrapper[place]):
            is_last = not any(re.fullmatch(_OPERATOR, word) for word in wrapper[place + 1 :])
            return place if is_last else None
    return None


def _text_of_shell(wrapper: Sequence[str]) -> int | None:
    """Where in a wrapper the text begins that a shell is given (`bash -c '…'`, `ssh host '…'`), or None."""
    for index in range(len(wrapper) - 1, -1, -1):
        if wrapper[index].rpartition("/")[2] not in SHELLS:
            continue
        for place in range(index + 1, len(wrapper)):
            if re.fullmatch(r"-\w*c", wrapper[place]):
                return place + 1
        if wrapper[index].rpartition("/")[2] == "ssh":
            place = index + 1
            while place < len(wrapper) and wrapper[place].startswith("-"):
                place += 1 if re.fullmatch(r"-[46AaCfGgKkMNnqsTtVvXxYy]+", wrapper[place]) else 2
            return place + 1
        return len(wrapper)
    return None


def _holds(wrapper: Sequence[str], name: str, value: str) -> bool:
    return any(word.endswith(f"{name}={value}") for word in wrapper)


def _shell_word(word: str) -> str:
    return word if re.fullmatch(_OPERATOR, word) else _quoted(word)


def _quoted(word: str) -> str:
    """A word as a shell reads it; one with a variable stays open to the shell."""
    if re.fullmatch(_PLAIN, word):
        return word
    if "$" in word and "'" not in word and "`" not in word:
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _single(word)


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"
