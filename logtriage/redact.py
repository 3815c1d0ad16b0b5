"""Takes secrets out of text, of JSON-like data and of command lines: the last step before every output.

What a secret looks like is data (`rules/secrets.yaml`); a secret is never kept, counted or returned.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from logtriage.records import Line

    Put = Callable[[str, str, str], str]
    """Gives the replacement for (kind, up to 80 characters in front of the secret, secret)."""


class Redactor:
    """Replaces secrets by `<redacted:KIND>`. What was redacted once comes back unchanged.

    Args:
        kinds: records of `rules/secrets.yaml`: `kind`, `anchor` (one text or several), `regex`, perhaps `shape` (a
            short regex to try first), and where a part of the match stays `keep` (group in front of the secret) and
            `keep_after` (group behind it).
    """

    def __init__(self, kinds: Sequence[Mapping[str, Any]]) -> None:
        self._kinds = [_Kind(kind) for kind in kinds]
        self._kinds_of: dict[str, list[int]] = {}
        for number, kind in enumerate(self._kinds):
            for anchor in kind.anchors:
                self._kinds_of.setdefault(anchor, []).append(number)
        self._met = self._kinds_of
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return `text` without its secrets. Time is linear in the length of `text`, once for equal ones."""
        if text not in self._texts:
            self._texts[text] = self._replace(text, _marker)
        return self._texts[text]

    def value(self, value: object) -> object:
        """Return a copy of JSON-like data without secrets; keys, numbers and other objects stay as they are.

        A text under a telling key (`{"api_key": …}`) and one behind a telling flag (`["--api-key", …]`) is a
        secret whatever it looks like.
        """
        return _Walk(self._for(value)).copy(value)

    def across(self, lines: Sequence[Line]) -> dict[int, str]:
        """Return, by index, the texts of those lines of a log whose secret only the lines around them give away.

        These are the body of a private key, the word behind a name or flag at the end of the line before, and the
        value of a variable that the line before names. The beginning of each text, up to `Line.start`, stays.
        """
        found = dict(self._continued(lines))
        for at in _key_body(lines):
            before, _, after = lines[at].text.rpartition(_body_of(lines[at].text))
            found[at] = f"{before}{_marker('private-key', '', '')}{after}"
        return found

    def argv(self, argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Return the words of a command with `$NAME` for each secret, and what each name stands for.

        For `--api-key X` that is `--api-key $API_KEY` and `{"API_KEY": "--api-key"}`. A secret that no
        flag or variable introduces is named after its kind. Two secrets of one name become NAME and NAME_2.
        """
        variables = _Variables()
        words: list[str] = []
        flag = ""
        for word in argv:
            if flag and not word.startswith("-"):
                harmless = not word or re.fullmatch(_HARMLESS, word)
                words.append(word if harmless else variables.put(flag, f"{flag}=", word))
            else:
                words.append(self._replace(word, variables.put))
            flag = word if _is_flag(word) and self.kind_of_name(word) else ""
        return words, variables.stand_for

    def kind_of_name(self, name: str) -> str:
        """Return the kind of secret that a flag, key or variable of this name holds, or '' for none."""
        if name not in self._names:
            head = f"{name}="
            found = self.text(head + _PROBE) if len(name) <= _LONGEST_NAME else ""
            marker = re.fullmatch(_MARKER, found.removeprefix(head)) if found.startswith(f"{head}<") else None
            self._names[name] = marker["kind"] if marker else ""
        return self._names[name]

    def _continued(self, lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
        for at in range(len(lines) - 1):
            line, after = lines[at], lines[at + 1]
            if line.text[-_TAIL:].rstrip(_BEHIND_A_NAME)[-3:].lower() not in _ENDS_OF_NAMES:
                continue
            if after.file == line.file and after.row - line.row <= 1:
                before, message = self.text(line.text[-_LONG_TAIL:]), after.text[after.start :]
                shown = self.text(f"{before}\n{message}")
                if "\n" in shown and shown != f"{before}\n{self.text(message)}":
                    yield at + 1, after.text[: after.start] + shown.partition("\n")[2]

    def _replace(self, text: str, put: Put) -> str:
        # A replaced secret may show the next one (a token inside a password), so go on until nothing changes.
        kinds_of = self._met
        for _ in range(_MAX_PASSES):
            before = text
            for kind in self._kinds_in(text.lower(), kinds_of):
                text = kind.replace(text, put)
            if text == before:
                break
            kinds_of = self._kinds_of
        return text

    def _for(self, value: object) -> Redactor:
        """Return a redactor for the texts of one value: in each it looks only for anchors that one of them holds."""
        whole = "\n".join(_texts(value)).lower()
        narrow = Redactor(())
        narrow.__dict__.update(self.__dict__)
        narrow._met = {anchor: numbers for anchor, numbers in self._kinds_of.items() if anchor in whole}
        return narrow

    def _kinds_in(self, lower: str, kinds_of: Mapping[str, Sequence[int]]) -> list[_Kind]:
        """Return the kinds whose anchor and shape occur in a text, which is given in lower case."""
        numbers = {number for anchor, numbers in kinds_of.items() if anchor in lower for number in numbers}
        return [kind for kind in map(self._kinds.__getitem__, sorted(numbers)) if kind.has_shape(lower)]


_MAX_PASSES = 5
_LONGEST_NAME = 100
_HEAD = 80
_PROBE = "Pr0be-4f9d2c7a1b"
_MARKER = r"<redacted:(?P<kind>[a-z0-9-]+)>"
# What may stand where a secret is expected, with the punctuation that follows it in a sentence or a repr.
_HARMLESS = (
    r"(?:<redacted:[a-z0-9-]+>|\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|[Nn]one|null|[Tt]rue|[Ff]alse|\*{3,}|\.{3})?[)\]},;.]*"
)
_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY"
_KEY_BODY = r"(?<![\w+/=])(?:[A-Za-z0-9+/]{40,}={0,2}|[A-Za-z0-9+/]{4,}={1,2}(?![\w=]))"
# The last word of a line, with what may stand around it in a quoted text.
_BODY_WORD = r"(?:(?<=[\"'|>:\]=(])|^)[A-Za-z0-9+/]{4,}={0,2}(?=(?:\\[nr])*\\{0,3}[\"']?[,\\]*$)"
_FULL_BODY = range(60, 79)
_LONG = 40
_FAR = 40
# A name that may introduce a secret ends in token, key, secret, password, passwd, pass or passphrase.
_ENDS_OF_NAMES = frozenset({"ken", "key", "ret", "ord", "swd", "ass", "ase"})
_BEHIND_A_NAME = " \t\r\\\"',:="
_TAIL = 40
_LONG_TAIL = 400
_INTRODUCER = r"(?:^|[\s\"'=])(--?[A-Za-z][\w-]*(?=[=\s])|[A-Za-z_]\w*(?==))[=\s][\s\"'\\]*$"


def _marker(kind: str, head: str, secret: str) -> str:
    return f"<redacted:{kind}>"


def _key_body(lines: Sequence[Line]) -> Iterator[int]:
    """Yield the indexes of lines that belong to the body of a private key, whether or not its BEGIN line was kept."""
    if not any(" " not in line.text.rstrip()[-_LONG:] and len(_body_of(line.text)) >= _LONG for line in lines):
        return
    bodies = {at: body for at, line in enumerate(lines) if (body := _body_of(line.text))}
    full = {at for at, body in bodies.items() if len(body) in _FULL_BODY and _is_mixed(body)}
    since, file = _FAR, -1  # lines since the BEGIN line or the last line of a body
    for at, line in enumerate(lines):
        since, file = since + 1 if line.file == file else _FAR, line.file
        if "-----" in line.text:
            since = 0 if re.search(_KEY_BEGIN, line.text) and "-----END " not in line.text else _FAR
            continue
        body = bodies.get(at, "")
        if not body:
            continue
        ends = any("-----END " in other.text for other in lines[at + 1 : at + 3])
        if len(body) >= _LONG:
            inside = since < _FAR or (at in full and (ends or _has_company(lines, at, full, bodies)))
        else:
            alone = line.text[line.start :].strip() == body
            inside = since < _FAR and (ends or (since == 1 and alone and (len(body) >= 20 or not body.isalpha())))
        if inside:
            since = 0
            yield at


def _body_of(text: str) -> str:
    found = re.search(_BODY_WORD, text.rsplit(None, 1)[-1]) if text and not text.isspace() else None
    return found[0] if found else ""


def _is_mixed(body: str) -> bool:
    """Say whether a text may be random in base64, not a digest in hexadecimal or a path."""
    body = body.rstrip("=")
    return body != body.lower() and body != body.upper() and body.count("/") < 9 and not body.isalpha()


def _has_company(lines: Sequence[Line], at: int, full: set[int], bodies: Mapping[int, str]) -> bool:
    """Say whether a body line stands beside another one, or beside lines that were not kept."""
    if full & {at - 2, at - 1, at + 1, at + 2} or bodies.get(at + 1, "").endswith("="):
        return True
    return any(
        0 <= other < len(lines) and lines[other].file == lines[at].file and abs(lines[other].row - lines[at].row) > 1
        for other in (at - 1, at + 1)
    )


def _is_flag(word: str) -> bool:
    return word.startswith("-") and "=" not in word and " " not in word


class _Kind:
    """One kind of secret; its regex is compiled when its anchor and its shape are met for the first time."""

    __slots__ = ("_after", "_before", "_regex", "_shape", "_source", "anchors", "name")

    def __init__(self, data: Mapping[str, Any]) -> None:
        anchor = data["anchor"]
        self.name = str(data["kind"])
        self.anchors = [text.lower() for text in ([anchor] if isinstance(anchor, str) else anchor)]
        self._shape = str(data.get("shape", ""))
        self._source = str(data["regex"])
        self._before = data.get("keep") or None
        self._after = data.get("keep_after") or None
        self._regex: re.Pattern[str] | None = None

    def has_shape(self, lower: str) -> bool:
        """Say whether the shape occurs in a text, which is given in lower case."""
        return not self._shape or re.search(self._shape, lower) is not None

    def replace(self, text: str, put: Put) -> str:
        if self._regex is None:
            self._regex = re.compile(self._source)

        def replacement(match: re.Match[str]) -> str:
            # A group that took no part in the match is at -1.
            start = max(match.start(), match.end(self._before)) if self._before else match.start()
            end = max(start, match.start(self._after)) if self._after else match.end()
            secret = text[start:end]
            if re.fullmatch(_HARMLESS, secret):
                return match[0]
            head = text[max(0, start - _HEAD) : start]
            return text[match.start() : start] + put(self.name, head, secret) + text[end : match.end()]

        return self._regex.sub(replacement, text)


class _Walk:
    """One walk over JSON-like data; knows whether an earlier text began a private key that goes on."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._in_key = False

    def copy(self, value: object, name: str = "") -> object:
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, dict):
            return {key: self.copy(item, str(key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            flags = ["", *(item if isinstance(item, str) and _is_flag(item) else "" for item in value)]
            items = [self.copy(item, flag) for item, flag in zip(value, flags, strict=False)]
            return items if isinstance(value, list) else tuple(items)
        return value

    def _text(self, text: str, name: str) -> str:
        kind = self._redactor.kind_of_name(name) if name else ""
        if kind and not re.fullmatch(_HARMLESS, text) and not (name.startswith("-") and _is_flag(text)):
            return _marker(kind, "", text)
        result = self._redactor.text(text)
        if self._in_key:
            result = re.sub(_KEY_BODY, _marker("private-key", "", ""), result)
        begin = max((match.start() for match in re.finditer(_KEY_BEGIN, text)), default=-1)
        self._in_key = (self._in_key or begin >= 0) and text.find("-----END ", max(begin, 0)) < 0
        return result


def _texts(value: object) -> Iterator[str]:
    """Yield every text that a walk over JSON-like data looks at."""
    if isinstance(value, str):
        yield value
        if _is_flag(value):
            yield f"{value}={_PROBE}"
    elif isinstance(value, dict):
        yield from (f"{name}={_PROBE}" for name in value)
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))


class _Variables:
    """Names for the secrets of one command; the secrets are held only to tell two of one name apart."""

    def __init__(self) -> None:
        self.stand_for: dict[str, str] = {}
        self._secrets: dict[str, str] = {}

    def put(self, kind: str, head: str, secret: str) -> str:
        found = re.search(_INTRODUCER, head)
        origin = found[1] if found else kind
        stem = re.sub(r"\W+", "_", origin.strip("-")).upper()
        name, count = stem, 1
        while self._secrets.setdefault(name, secret) != secret:
            count += 1
            name = f"{stem}_{count}"
        self.stand_for.setdefault(name, origin)
        return f"${name}"
