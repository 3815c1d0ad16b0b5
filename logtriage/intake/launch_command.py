"""Finds a server's own command in a shell line or a list of words.

What starts a server and how its flags are spelt is given in; nothing is evaluated, looked up or run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LaunchSpec(Record):
    """How a server is launched: Python modules, commands (first words), other spellings of flags."""

    modules: Sequence[str]
    commands: Sequence[Sequence[str]]
    aliases: Mapping[str, str]


class Command(Record):
    """A launch command in parts.

    `wrapper` holds the words before the server command; commands before it on the line (`cd x &&`) stand there with
    their operators. `env` holds the variables set for it; those set inside the wrapper (`docker run -e A=b`) stand in
    both. `flags` maps the name used in reports to the value, 'true' for a switch. `redirect` is the shell's tail.
    """

    wrapper: tuple[str, ...]
    env: dict[str, str]
    words: tuple[str, ...]
    flags: dict[str, str]
    image: str | None
    redirect: str


def find_command(text: str | Sequence[str], spec: LaunchSpec) -> Command | None:
    """Return the first server command in `text` (shell text, or words that a shell has split), or None."""
    if not isinstance(text, str):
        if len(text) != 1 or " " not in text[0]:
            return _in_tokens([("word", word, 0) for word in text], "", spec)
        text = text[0]
    if not _may_hold(text, spec):
        return None
    text = re.sub(_PROMPT, "", re.sub(_CONTINUED, " ", text))
    found = _in_tokens(_tokens(text, _WORD) or [], text, spec)
    if found is None:  # quotes of other lines may be in the way
        lines = "\n".join(line for line in text.split("\n") if _may_hold(line, spec))
        tokens = _tokens(lines, _WORD)
        found = _in_tokens(_tokens(lines, _BARE_WORD) or [] if tokens is None else tokens, lines, spec)
    if found is None:  # `command: ["python3", "-m", …]`
        found = _in_tokens([("word", _unquoted(item[1]), 0) for item in re.finditer(_ITEM, text)], "", spec)
    return found


def canonical(flag: str, spec: LaunchSpec) -> str:
    """Return the name of `flag` that is used in reports, without its value."""
    name = flag.partition("=")[0]
    name = name.replace("_", "-") if name.startswith("--") else name
    return spec.aliases.get(name, name)


# All these are compiled when they are first used: a plain command needs few of them.
_SPECIAL = frozenset("'\"\\;&|<>#\n")
_CONTINUED = r"\\[ \t]*\r?\n(?:[ \t]*>[ \t])?"
# Time stamps in brackets, then `user@host:~$`, `$` or the `+` of `set -x`. A bare `#` is a comment.
_PROMPT = (
    r"(?m)^[ \t]*(?:\[[^\]\"'\n]{1,80}\][ \t]+)*"
    r"(?:(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[^$#%\n\"']{1,200}[$#%>]|[$%>])[ \t]+|\++[ \t]+)?"
)
_WORD = r"""(?xs)(?P<space>[^\S\n]+|(?<!\S)\#[^\n]*)
    |(?P<redirect>(?:\d|&)?(?:>[>&|]?|<{1,3}(?![\w:.-]+>)))
    |(?P<split>\n|&&|\|[|&]?|;|&)
    |(?P<word>(?:[^\s'"\\;&|<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|<[\w:.-]+>)++)
    |(?P<odd>.)"""
_BARE_WORD = (
    r"(?P<split>\n|(?<!\S)(?:&&|\|[|&]?|;|&)(?!\S))|(?P<space>\s+?)|(?P<redirect>(?:\d|&)?[<>]\S*)|(?P<word>\S+)"
)
_PIECE = r"""(?s)\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)\""""
_ITEM = r"""[\[,]\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d[\d.]*(?=\s*[,\]]))"""
_ASSIGNMENT = r"[A-Za-z_]\w*="
_PYTHON = r"(?s)(?:.*/)?(?:python|pypy)[\d.]*t?(?:\.exe)?|\$\{?\w*PYTHON\w*\}?"
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "su", "ssh", "tmux", "screen"})
FLAG = r"(?s)--?[A-Za-z][\w.-]*(?:=.*)?"
# `Example: sglang serve --model-path <model> [options]` stands in every log of SGLang 0.5.16.
_MANUAL = r"(?:[Uu]sage|[Ee]xamples?|[Tt]ry|[Hh]int|[Nn]ote):|<[\w-]+>|\[(?:-h|options)\]"
_LABEL = r"[A-Za-z]\w*:"
_PROSE = r"[A-Z][a-z]+,?"
# Options of `docker run` that take no further word.
_DOCKER_SWITCH = (
    r"(?s)--[\w-]+=.*|-[ditqP]+|-[ditqP]*[^ditqP\W].+|--(?:detach|init|interactive|no-healthcheck|oom-kill-disable"
    r"|privileged|publish-all|quiet|read-only|rm|sig-proxy|tty)"
)


def _may_hold(text: str, spec: LaunchSpec) -> bool:
    modules = any(name in text or name.replace(".", "/") in text for name in spec.modules)
    return modules or any(all(word in text for word in command) for command in spec.commands)


def _tokens(text: str, pattern: str) -> list[tuple[str, str, int]] | None:
    """Split as a shell does; None where a quote is not closed."""
    if _SPECIAL.isdisjoint(text):
        return [("word", word, 0) for word in text.split()]
    tokens = []
    for match in re.finditer(pattern, text):
        kind, word = str(match.lastgroup), match[0]
        if kind == "odd":
            return None
        if kind == "word":
            word = _unquoted(word) if pattern is _WORD else word.strip("'\"")
        if kind != "space":
            tokens.append((kind, word, match.start()))
    return tokens


def _unquoted(raw: str) -> str:
    return re.sub(_PIECE, lambda m: m[1] or m[2] or re.sub(r'\\([\\"$`])', r"\1", m[3] or ""), raw)


def _in_tokens(tokens: Sequence[tuple[str, str, int]], raw: str, spec: LaunchSpec) -> Command | None:
    words: list[str] = []
    for index, (kind, text, start) in enumerate([*tokens, ("split", "", len(raw))]):
        if kind == "word":
            words.append(text)
            continue
        found = (_direct(words, spec) or _nested(words, spec)) if words else None
        if found:
            redirect = " ".join((found.redirect, raw[start:].partition("\n")[0])).strip()
            return _with_earlier(tokens[: index - len(words)], found.replace(redirect=redirect))
        words = []
    return None


def _direct(words: Sequence[str], spec: LaunchSpec) -> Command | None:
    start, arguments = _server_span(words, spec)
    if arguments == 0:
        return None
    env, wrapper = _environment(words[:start])
    flags = _flags(words[arguments:], spec)
    if any(re.fullmatch(_MANUAL, word) for word in words) or (start and not flags and re.fullmatch(_PROSE, words[0])):
        return None
    return Command(tuple(wrapper), env, tuple(words[start:]), flags, _image(wrapper), "")


def _server_span(words: Sequence[str], spec: LaunchSpec) -> tuple[int, int]:
    """Return where the server command and where its arguments begin; (-1, 0) where there is none."""
    scripts = tuple(module.replace(".", "/") + ".py" for module in spec.modules)
    for index, word in enumerate(words):
        start = -1
        end = index + 1
        if word == "-m" and end < len(words) and words[end] in spec.modules:
            start, end = _interpreter(words, index), index + 2
        elif (word.startswith("-m") and word[2:] in spec.modules) or word.endswith(scripts):
            start = _interpreter(words, index)
        for command in spec.commands:
            if word.rpartition("/")[2] == command[0] and words[end : index + len(command)] == [*command[1:]]:
                start, end = index, index + len(command)
        if start >= 0:
            return start, end
    return -1, 0


def _interpreter(words: Sequence[str], index: int) -> int:
    """Return where the Python stands whose options end before `index` (`uv run` counts as one), or -1."""
    index -= 1
    while index >= 0 and (words[index].startswith("-") or (index and words[index - 1] in ("-X", "-W"))):
        index -= 1
    if index >= 1 and words[index] == "run" and words[index - 1].endswith("uv"):
        return index - 1
    return index if index >= 0 and re.fullmatch(_PYTHON, words[index]) else -1


def _nested(words: Sequence[str], spec: LaunchSpec) -> Command | None:
    """Look into the text that a shell is given: `bash -lc 'cd x && python3 …'`."""
    shell = next((index for index, word in enumerate(words) if word.rpartition("/")[2] in SHELLS), len(words))
    for index in range(shell + 1, len(words)):
        inner = find_command(words[index], spec) if re.search(r"\s", words[index]) else None
        if inner:
            env, wrapper = _environment(words[:index])
            image = inner.image or _image(wrapper)
            return inner.replace(wrapper=(*wrapper, *inner.wrapper), env=env | inner.env, image=image)
    return None


def _with_earlier(tokens: Sequence[tuple[str, str, int]], command: Command) -> Command:
    """Add what earlier commands set (`export A=b`) and, from the same line, the commands themselves."""
    env: dict[str, str] = {}
    wrapper: list[str] = []
    words: list[str] = []
    for kind, text, _ in tokens:
        words.append(text)
        if kind == "split":
            if words[0] == "export":
                env |= dict(word.split("=", 1) for word in words[1:-1] if "=" in word)
            elif len(words) > 1:
                wrapper += words
            wrapper = [] if text == "\n" else wrapper
            words = []
    return command.replace(wrapper=(*wrapper, *words, *command.wrapper), env=env | command.env)


def _environment(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables set in front of a command, and its wrapper without the leading ones."""
    # A log says `Launching: python3 …` or `Starting python3 …`; such words are no wrapper.
    words = words[max((index + 1 for index, word in enumerate(words) if re.fullmatch(_LABEL, word)), default=0) :]
    if words and re.fullmatch(_PROSE, words[0]):
        words = [word for word in words if re.match(_ASSIGNMENT, word)]
    leading = (index for index, word in enumerate(words) if not re.match(_ASSIGNMENT, word) and word != "env")
    start = next(leading, len(words))
    start -= int(start > 0 and words[start - 1] == "env")  # `env -i …` is a wrapper
    env = dict(word.split("=", 1) for word in words[:start] if word != "env")
    follows = False
    for before, word in zip(words[start:], words[start + 1 :], strict=False):
        value = word.removeprefix("--env=").removeprefix("-e")
        introduced = follows or value != word or before in ("-e", "--env", "env", "sudo", "-E", "-i")
        follows = introduced and bool(re.match(_ASSIGNMENT, value))
        env |= dict([value.split("=", 1)]) if follows else {}
    return env, list(words[start:])


def _image(wrapper: Sequence[str]) -> str | None:
    for index, word in enumerate(wrapper):
        if word.startswith("docker://") or word.endswith(".sif"):
            return word
        place = index + 1
        if word == "run" and index and wrapper[index - 1].endswith(("docker", "podman", "nerdctl")):
            while place < len(wrapper) and wrapper[place].startswith("-"):
                place += 1 if re.fullmatch(_DOCKER_SWITCH, wrapper[place]) else 2
        elif word.startswith("--container-image="):
            return word.partition("=")[2]
        elif word != "--container-image":
            continue
        return wrapper[place] if place < len(wrapper) else None
    return None


def _flags(words: Sequence[str], spec: LaunchSpec) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if re.fullmatch(FLAG, word):
            name = canonical(word, spec)
            values[name] = [word.partition("=")[2]] if "=" in word else []
        elif name:
            values[name].append(word)
    return {flag: " ".join(found) if found else "true" for flag, found in values.items()}
