"""The encoding of text: as given, by the byte order mark, or by the bytes that occur."""

from __future__ import annotations

import codecs
import io
import re

from tuplet.core.exceptions import InputError, TupletWarning, warn_outside

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",  # before those that they begin with
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip

_HEAD = 2_000
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_DESCRIBED = {
    "cp1252": "cp1252, that of Windows in Western Europe and America",
    "latin-1": "latin-1",
}


def require_encoding(name: str | None, reader: str) -> None:
    """Refuse names of encodings of text that Python does not have."""
    try:
        if name is not None:
            " ".encode(name)
            codecs.getincrementaldecoder(name)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"{reader}: encoding={name!r} is not known; use utf-8, utf-16, cp1252, latin-1, or another that"
            " Python has."
        ) from None


def wide_encoding(content: bytes) -> str | None:
    """Return UTF-16 or UTF-32, with or without a byte order mark, if the content looks like it, or None.

    Examples
    --------
    >>> wide_encoding("a;b".encode("utf-16")), wide_encoding("a;b".encode("utf-16-be"))
    ('utf-16', 'utf-16-be')
    >>> wide_encoding(b"a;b") is None
    True
    """
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    head = content[:_HEAD]
    first, second = head[0::2].count(0), head[1::2].count(0)
    if not head or max(first, second) < 0.3 * len(head) or min(first, second):
        return None
    return "utf-16-be" if first else "utf-16-le"


def narrow_encoding(content: bytes) -> str | None:
    """Return the encoding of text, a byte or more to a letter; None if it is damaged, or no text.

    What is not UTF-8 is cp1252, or latin-1 if it has bytes that cp1252 does not use. Text most letters of
    which are sound UTF-8 is damaged, not of another encoding.

    Examples
    --------
    >>> narrow_encoding(b"ascii"), narrow_encoding("é".encode()), narrow_encoding("5 €".encode("cp1252"))
    ('ascii', 'utf-8', 'cp1252')
    """
    if content.isascii():
        return "ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    text = content.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    sound = len(text) - len(text.encode("ascii", "ignore")) - wrong
    if sound > wrong or _NO_TEXT.search(content):
        return None
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def warn_of_encoding(file: str, encoding: str) -> None:
    """Tell users in which encoding a file is read that is not UTF-8."""
    described = _DESCRIBED.get(encoding, encoding.upper())
    warn_outside(
        f"{file!r} is not in UTF-8, and is read as {described}; if letters are wrong, give encoding=.",
        TupletWarning,
    )


def with_byte_order(encoding: str, content: bytes) -> str:
    """Return an encoding that does not need a byte order mark if the content has none: the usual order."""
    name, has_mark = codecs.lookup(encoding).name, content.startswith(tuple(_MARKS))
    return encoding if has_mark or name not in ("utf-16", "utf-32") else f"{name}-le"


class Recoded(io.RawIOBase):
    """A stream of text in UTF-8, made from one in another encoding.

    Parameters
    ----------
    stream : binary stream
    encoding : str
    """

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        super().__init__()
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.waiting = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer, and return how many bytes; 0 at the end."""
        while not self.waiting:
            content = self.stream.read(len(buffer))
            self.waiting = self.decoder.decode(content, final=not content).encode()
            if not content:
                break
        size = min(len(buffer), len(self.waiting))
        buffer[:size], self.waiting = self.waiting[:size], self.waiting[size:]
        return size
