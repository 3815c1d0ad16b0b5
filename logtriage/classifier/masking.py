"""Text of a log in, what stays the same from run to run out: numbers, paths, addresses, ranks and hashes are masked."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

_MAX_RAW = 1000
_MAX_TEXT = 700

_SUBSTITUTES = re.compile(
    r"""(?x)
    \b(?:
        (?P<url>[a-z]++://[^\s'"<>)\]]+)
        |(?P<uuid>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{4,}\b)
        |(?P<hex>0x[0-9a-fA-F]+\b|(?=[a-f]*+\d)(?=\d*+[a-f])[0-9a-f]{7,}\b)
        |(?P<address>\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)
        |(?P<arch>(?:sm|SM|compute|COMPUTE)[ _-]?(?P<sm>\d{2,3})[af]?\b|SM(?P<family>\d{1,2})x\b)
    )
    |(?P<path>(?:(?<![\w.])|(?<=[\s'\"]-[IL]))(?=[/~.A-Za-z])(?:[A-Za-z]:|~|\.{1,2})?(?:/[\w.@+~=,-]+){2,}/?)"""
)
_ARCH = r"\b(?:(?:sm|SM|compute|COMPUTE)[ _-]?(\d{2,3})[af]?|SM(\d{1,2})x)\b"
_DOTTED = r"(?i)capabilit\w{0,4}[^\d\n]{0,24}(\d{1,2})\.(\d)\b"
_MAJORS = r"\[(\d{1,2}(?:, ?\d{1,2})*)\]"
_NO_TOOLKIT = r"capab|device|comp|arch|graph|mem|err|\bsm"  # what else may stand between CUDA and a number
_TOOLKIT_VERSION = rf"(?i)\b(?:cuda|cu(?=1[1-4]\d\b))(?:(?!{_NO_TOOLKIT})[^\d\n]){{0,24}}1[1-4](?:\.?\d\b|\+)"
_NUMBER = re.compile(r"(?<!\bsm)(?<!\d)\d+(?:[.,:]\d+)*")
_ENDING = r"\.(?:so[.\d]*|h|hpp|cuh?|cpp|py|json|safetensors|bin|gguf|a|o|ptx|cubin|pt|txt)$"
_TOOL = r"(?:nvcc|ptxas|cicc|fatbinary|gcc|g\+\+|cc1plus|ld|ninja)$"


_SAME_LETTER = r"([^\W\d_]|[!?$@&,])\1{7,}"
_SAME_WORD = r"(?i)\b(\w{1,20})(?:[ ,.]{1,2}\1\b){4,}"
_SAME_PHRASE = r"(?i)\b(\w[^\n]{8,80}?\w[ ,.!]{1,2})\1\1"
_USELESS = r"(?i)\b(?:accuracy|exact_match|score|pass@1)\W{1,4}(?:0\.0[0-4]\d*|0|[0-4](?:\.\d+)? ?%)(?![\d.])"
_SCRIPTS = (
    (0x41, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xE7F),
    (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF),
)  # fmt: skip
_MANY_SCRIPTS = 3
_WORD = r"\w+"
# How often some word must stand in a line for it to be odd in that way, which is soon seen.
_ODD = (("letters", 0, _SAME_LETTER), ("words", 5, _SAME_WORD), ("phrases", 3, _SAME_PHRASE), ("useless", 0, _USELESS))


def oddities(text: str) -> list[str]:
    """Return what is odd about a line: letters, words or phrases again and again, alphabets mixed, nothing right."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text[:1500])
    most = max(Counter(re.findall(_WORD, text.lower())).values(), default=0)
    found = [name for name, least, pattern in _ODD if most >= least and re.search(pattern, text)]
    if not text.isascii():
        scripts = [_script(letter) for letter in text]
        joined = any(one != other and -1 not in (one, other) for one, other in pairwise(scripts))
        found += ["alphabets"] if len({*scripts} - {-1}) >= _MANY_SCRIPTS + (not joined) else []
        found += ["replaced"] if text.count("\ufffd") >= _MANY_SCRIPTS else []
    return found


def _script(letter: str) -> int:
    """Which of the alphabets a letter belongs to, or -1."""
    if letter <= "\x7f" and not letter.isalpha():
        return -1
    return next((number for number, (low, high) in enumerate(_SCRIPTS) if low <= ord(letter) <= high), -1)


def masked(text: str) -> str:
    """Return a line without what differs from run to run, beginning and end of a long one.

    Of a path its last part stays if that is a kind of file, or a tool that builds.
    """
    return _trimmed(_SUBSTITUTES.sub(_substitute, _trimmed(text, _MAX_RAW)), _MAX_TEXT)


def _trimmed(text: str, most: int) -> str:
    """A line of at most so many characters: of a longer one its beginning and, less of it, its end."""
    return text if len(text) <= most else f"{text[: most * 5 // 7]} {text[-most * 2 // 7 :]}"


def names_toolkit(text: str) -> str:
    """Return the words of a line that name a version of CUDA (not of a GPU's capability), or nothing."""
    match = re.search(_TOOLKIT_VERSION, text)
    return match[0] if match else ""


def archs(text: str) -> set[int]:
    """Return the GPU architectures that a line names, as compute capability times ten; of a list of majors these."""
    named: set[int] = set()
    for sm, family in re.findall(_ARCH, text):
        named.add(int(sm) if sm else int(family) * 10)
    named.update(int(major) * 10 + int(minor) for major, minor in re.findall(_DOTTED, text))
    for listed in re.findall(_MAJORS, text):
        majors = [int(major) for major in listed.split(",")]
        named.update(major * 10 for major in majors if 7 <= major <= 12)
    return {sm for sm in named if 50 <= sm <= 130}


def shape(text: str) -> str:
    """Return what is left of a line when everything that may differ between two runs is taken out."""
    return shape_of_masked(masked(text))


def shape_of_masked(text: str) -> str:
    """Return what `shape` does, of a line that is masked already."""
    return " ".join(_NUMBER.sub("#", text).split())


def _substitute(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "path":
        last = match["path"].rstrip("/").rpartition("/")[2]
        return f"<path> {last}" if re.search(_ENDING, last) or re.match(_TOOL, last) else "<path>"
    if match["arch"]:
        return f"sm{match['sm']}" if match["sm"] else f"sm{match['family']}x"
    return f"<{kind}>"
