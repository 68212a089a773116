"""The bytes of a capture: a file mapped into memory, the standard input, or what gzip unpacks.

What cannot be mapped is copied into a temporary file without a name first, so that it need not fit
into memory. A small gzip file can unpack to terabytes. Both bounds stop that: the ratio early, as
captures hardly shrink to a thirtieth; the size for what comes through a pipe.
"""

from __future__ import annotations

import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from gzip import BadGzipFile, GzipFile
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from mqis.cli.output import print_note
from mqis.files import system_reason
from mqis.texts import size
from mqis.wire.errors import MqisError
from mqis.wire.pcap.classic import is_pcap
from mqis.wire.pcap.pcapng import is_pcapng

#: The argument that means the standard input.
STDIN: Final = Path("-")
#: The most bytes that are copied or unpacked.
MAX_COPIED: Final = 8 << 30
#: Unpacked bytes per packed byte, beyond a size that every file may have.
MAX_RATIO: Final = 200
FREE_OF_RATIO: Final = 64 << 20
_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"


@contextmanager
def mapped_capture(path: Path) -> Iterator[memoryview]:
    """Opens a pcap or pcapng file, packed or not; raises ``MqisError`` if it is none."""
    with ExitStack() as opened:
        try:
            file = _opened(path, opened)
            if _starts(file) == _GZIP:
                file = _unpacked(path, file, opened)
            view = _mapped(path, file, opened)
        except OSError as error:
            raise MqisError(f"{path}: cannot be read: {system_reason(error)}") from None
        if not (is_pcap(view) or is_pcapng(view)):
            raise MqisError(f"{path}: this is neither a pcap nor a pcapng file")
        yield view


def _opened(path: Path, opened: ExitStack) -> IO[bytes]:
    """The file itself, or a copy of what a pipe or a device gives."""
    if path == STDIN:
        return _copied(path, sys.stdin.buffer, opened)
    file = opened.enter_context(path.open("rb"))
    if stat.S_ISREG(path.stat().st_mode):
        return file
    return _copied(path, file, opened)


def _starts(file: IO[bytes]) -> bytes:
    file.seek(0)
    start = file.read(len(_GZIP))
    file.seek(0)
    return start


def _mapped(path: Path, file: IO[bytes], opened: ExitStack) -> memoryview:
    file.flush()
    if not file.seek(0, 2):
        raise MqisError(f"{path}: the file is empty")
    octets = opened.enter_context(mmap(file.fileno(), 0, access=ACCESS_READ))
    return opened.enter_context(memoryview(octets))


def _copied(path: Path, source: IO[bytes], opened: ExitStack) -> IO[bytes]:
    copy = opened.enter_context(TemporaryFile())  # noqa: SIM115
    while chunk := source.read(_CHUNK):
        if not copy.tell() and not _is_known(chunk):
            raise MqisError(f"{path}: this is neither a pcap nor a pcapng file")
        _write(path, chunk, copy)
    return copy


def _is_known(start: bytes) -> bool:
    return start.startswith(_GZIP) or is_pcap(start) or is_pcapng(start)


def _write(path: Path, chunk: bytes, copy: IO[bytes]) -> None:
    if copy.tell() + len(chunk) > MAX_COPIED:
        raise MqisError(
            f"{path}: this is more than {size(MAX_COPIED)}; write it into a file, unpacked, "
            "and name the file"
        )
    copy.write(chunk)


def _unpacked(path: Path, packed: IO[bytes], opened: ExitStack) -> IO[bytes]:
    """Unpacks gzip; keeps what comes before a damaged or missing end."""
    plain = opened.enter_context(TemporaryFile())  # noqa: SIM115
    try:
        with GzipFile(fileobj=packed, mode="rb") as source:
            while chunk := source.read1(_CHUNK):  # read would lose what comes before damage
                _write(path, chunk, plain)
                _refuse_bomb(path, packed.tell(), plain.tell())
    except (EOFError, BadGzipFile, zlib.error) as error:
        if not plain.tell():
            raise MqisError(f"{path}: cannot be unpacked: {error}") from None
        text = f"{path}: only {plain.tell()} bytes could be unpacked: {error}"
        print_note(text)
    return plain


def _refuse_bomb(path: Path, packed: int, unpacked: int) -> None:
    if unpacked > max(FREE_OF_RATIO, packed * MAX_RATIO):
        raise MqisError(
            f"{path}: unpacks to more than {MAX_RATIO} times its size, which no capture does; "
            "if you trust it, unpack it with 'gunzip' and name the file"
        )
