"""Bytes as people paste them: hexadecimal with spaces or colons, a hex dump, a file, stdin."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mqis.wire.errors import MqisError

# "0000  00 01 02", "00000000: 0001 0203  ..", "00000010 ..": an offset, then its bytes
_DUMP_LINE = re.compile(r"\s*([0-9A-Fa-f]{4,16})(:|[ \t]{2,}|\Z)(.*)")
_SEPARATORS = re.compile(r"0x|\\x|[\s:,;]", re.IGNORECASE)


def read_input(argument: str) -> bytes:
    """Reads stdin if ``-``, a file if there is one of that name, else the argument itself."""
    if argument == "-":
        return _of_content(sys.stdin.buffer.read())
    path = Path(argument)
    try:
        if path.is_file():
            return _of_content(path.read_bytes())
    except OSError as error:  # a name that is too long for a file is hexadecimal, perhaps
        if not path.name or len(argument) < 256:
            raise MqisError(f"{argument}: cannot be read: {error.strerror}") from error
    data = parse_hex(argument)
    if data is None:
        raise MqisError(f"{_short(argument)} is neither hexadecimal nor a file")
    return data


def _of_content(content: bytes) -> bytes:
    """Decodes content that is hexadecimal text, and returns any other content unchanged."""
    try:
        return parse_hex(content.decode("ascii")) or content
    except UnicodeDecodeError:
        return content


def parse_hex(text: str) -> bytes | None:
    """The bytes, or None if the text is something else."""
    return _of_dump(text) or _of_digits(_SEPARATORS.sub("", text))


def _of_digits(digits: str) -> bytes | None:
    try:
        return bytes.fromhex(digits) or None
    except ValueError:
        return None


def _of_dump(text: str) -> bytes | None:
    """Parses a hex dump; None unless each offset is right, which tells offsets from bytes."""
    data = b""
    for line in filter(str.strip, text.splitlines()):
        match = _DUMP_LINE.fullmatch(line)
        if match is None or int(match[1], 16) != len(data):
            return None
        shown = _without_text(match[3], colon=match[2] == ":")
        part = _of_digits("".join(shown.split())) if shown.strip() else b""
        if part is None:
            return None
        data += part
    return data or None


def _without_text(columns: str, *, colon: bool) -> str:
    """Removes the column of characters from a line of a dump.

    xxd puts a colon after the offset and two spaces before the characters; hexdump puts bars
    around them, Wireshark three spaces before them.
    """
    columns = columns.strip("\t ") if colon else columns.partition("|")[0].strip()
    return re.split(r"\s{2,}" if colon else r"\s{3,}", columns)[0]


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
