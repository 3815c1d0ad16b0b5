"""Text in UTF-16 in, the same text in UTF-8 out, piece by piece; a byte order mark is taken away."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def from_utf16(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a text in UTF-16 that begins with its mark; what is no UTF-16 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text.encode("utf-8", "replace")
    if text := decoder.decode(b"", final=True):
        yield text.encode("utf-8", "replace")
