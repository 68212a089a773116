"""Files in stores of objects, through ``pyarrow.fs``, which is imported only here and only when
it is needed: a server that archives to a directory needs no pyarrow."""

from __future__ import annotations

import io
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from mqis.files import PART
from mqis.places.address import RemoteAddress
from mqis.places.errors import PlaceError, explained_at

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

#: Seconds to wait for a connection and for an answer, and attempts per request: a store that
#: hangs costs its caller about a minute.
CONNECT_S, REQUEST_S, ATTEMPTS = 5.0, 20.0, 2
#: The bytes that one request reads, at least.
_READ_BYTES = 1 << 20
_WRITE_BYTES = 8 << 20
#: The number of files that one listing may have.
MAX_LISTED = 1_000_000


class ListedFile(NamedTuple):
    """A file in a listing."""

    address: RemoteAddress
    size: int
    #: When it was written, in nanoseconds, as exactly as the store tells.
    modified_ns: int


def listed_below(place: RemoteAddress, *, recursive: bool) -> list[ListedFile]:
    """The files in a directory, sorted by name; a directory that does not exist has none."""
    with _explained(place):
        system = _system(place)
        from pyarrow.fs import FileSelector  # noqa: PLC0415

        selector = FileSelector(_key(place), recursive=recursive, allow_not_found=True)
        found = [info for info in system.get_file_info(selector) if info.is_file]
        if not found and place.scheme == "s3" and not system.get_file_info(place.host).type:
            raise PlaceError(f"{place}: there is no such bucket; create it, or correct the address")
    if len(found) > MAX_LISTED:
        raise PlaceError(f"{place}: there are more than {MAX_LISTED:,} files; name a part of them")
    return sorted(ListedFile(_below(place, info), info.size, info.mtime_ns or 0) for info in found)


def size_in_store(place: RemoteAddress) -> int | None:
    """The size of a file; None if there is no such file."""
    with _explained(place):
        info = _system(place).get_file_info(_key(place))
    return info.size if info.is_file else None


def open_in_store(place: RemoteAddress) -> BinaryIO:
    """Opens a file; each read fetches only the bytes that are asked for, and some ahead."""
    with _explained(place):
        opened = _system(place).open_input_file(_key(place))
    return io.BufferedReader(_RangedFile(place, opened), _READ_BYTES)


def part_in_store(place: RemoteAddress, start: int, end: int) -> bytes:
    """Reads some bytes of a file, and no others."""
    with _explained(place), _system(place).open_input_file(_key(place)) as opened:
        data: bytes = opened.read_at(end - start, start)
        return data


def put_in_store(source: Path, place: RemoteAddress) -> None:
    """Copies a file; it gets its name when all of it is there.

    S3 shows an object when its upload ends. Other stores show a file while it grows, so there it
    has another name until then.
    """
    in_s3 = place.scheme == "s3"
    target = place if in_s3 else place.parent / f"{place.name}{PART}"
    with _explained(place):
        system = _system(place)
        if not in_s3:  # S3 has no directories
            system.create_dir(_key(place.parent), recursive=True)
        _upload(system, source, target)
        if not in_s3:
            system.move(_key(target), _key(place))


def _upload(system: FileSystem, source: Path, target: RemoteAddress) -> None:
    """Copies the bytes. After a failure to read the source, a beginning may stay in the store:
    closing a stream of pyarrow ends its upload, whatever the reason."""
    size = 0
    with source.open("rb") as file, system.open_output_stream(_key(target)) as out:
        while data := file.read(_WRITE_BYTES):
            out.write(data)
            size += len(data)
    if system.get_file_info(_key(target)).size != size:
        raise PlaceError(f"{target}: the copy has another size than {source}; it is tried again")


class _RangedFile(io.RawIOBase):
    """A file of pyarrow as Python's buffers want it, with errors that say where."""

    def __init__(self, place: RemoteAddress, opened: Any) -> None:
        self._place = place
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _explained(self._place):
            data = self._opened.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._opened.seek(offset, whence)
        return int(self._opened.tell())

    def tell(self) -> int:
        return int(self._opened.tell())

    def close(self) -> None:
        if not self.closed:
            self._opened.close()
        super().close()


# --- file systems ---------------------------------------------------------------------------------


def _explained(place: RemoteAddress) -> Any:
    return explained_at(place, [value for _, value in place.secrets])


def _key(place: RemoteAddress) -> str:
    """The path as the file system knows it; of S3 and Google with the bucket."""
    if place.scheme == "hdfs":
        return f"/{place.path}"
    bucket = place.host.partition("@")[0] if place.scheme == "abfss" else place.host
    return f"{bucket}/{place.path}" if place.path else bucket


def _below(place: RemoteAddress, info: FileInfo) -> RemoteAddress:
    prefix = f"{_key(place).strip('/')}/"
    return place / str(info.path).lstrip("/").removeprefix(prefix)


def _system(place: RemoteAddress) -> FileSystem:
    try:
        import pyarrow.fs  # noqa: F401, PLC0415
    except ImportError:
        raise PlaceError(
            f"{place}: stores of objects need pyarrow; install mqis[pipeline], or give a directory"
        ) from None
    return _opened_system(place.scheme, place.host, place.settings, place.secrets)


@lru_cache(maxsize=32)
def _opened_system(
    scheme: str,
    host: str,
    settings: tuple[tuple[str, str], ...],
    secrets: tuple[tuple[str, str], ...],
) -> FileSystem:
    from pyarrow import fs  # noqa: PLC0415

    if scheme == "s3":
        # Trailing checksums are Amazon's own; other S3 servers refuse uploads that have them.
        os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        return fs.S3FileSystem(
            **dict(settings),
            **dict(secrets),
            connect_timeout=CONNECT_S,
            request_timeout=REQUEST_S,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            background_writes=False,
            check_directory_existence_before_creation=True,
        )
    bare = RemoteAddress(scheme, host, "", settings)
    return fs.FileSystem.from_uri(str(bare))[0]


def forget_systems() -> None:
    """Forgets the opened stores, so that a changed environment counts."""
    _opened_system.cache_clear()
