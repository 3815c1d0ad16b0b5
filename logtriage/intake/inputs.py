"""Tells a folder, a pattern or an archive, which stand for several logs, from a log."""

from __future__ import annotations

import os
import stat

from logtriage.errors import InputError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How compressed files begin."""

_HEAD, _PACKED_HEAD = 512, 256 << 10


def kind_of(path: str) -> str:
    """Return ``folder``, ``pattern``, ``tar`` or ``zip``; nothing for what is to be read as a log."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return "pattern" if any(sign in path for sign in "*?[") else ""
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        return ""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(_HEAD)
            if head.startswith((GZIP, ZSTD)):
                head = _unpacked(head + file.read(_PACKED_HEAD), path)
    except OSError:
        return ""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if head[257:262] == b"ustar" else ""


def member_of(path: str) -> tuple[str, str]:
    """Return the archive and the member of ``logs.tar!node3.log``, or the path and nothing."""
    archive, sign, member = path.partition("!")
    if sign and not os.path.exists(path) and kind_of(archive) in ("tar", "zip"):
        return archive, member
    return path, ""


def _unpacked(head: bytes, path: str) -> bytes:
    """The beginning of a compressed file's text; nothing where it cannot be unpacked (reading it will say why)."""
    from logtriage.intake import compression

    text = b""
    try:
        for piece in compression.unpacked([head], head[:4], path, []):
            text += piece
            if len(text) >= _HEAD:
                break
    except InputError:
        pass
    return text
