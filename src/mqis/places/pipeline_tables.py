"""Where the tables of the pipeline lie, and which version of a table is the current one.

    tables/divergence                           a link to .divergence/v000003
    tables/.divergence/v000003/part-....parquet

So any program that reads Parquet reads ``tables/divergence``. A new version is written beside the
others and becomes current when the link is replaced: a reader sees one version or the other.

A mounted bucket has no links. There, and in directories of earlier versions of mqis, a table is a
directory with its versions and a file that names one of them:

    tables/divergence/v000003/part-....parquet
    tables/divergence/CURRENT                   says v000003
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from mqis.files import flush_directory, write_whole

_POINTER = "CURRENT"
_VERSION = re.compile(r"v(\d{6,})")
#: A version that is being written, or that a killed job has left.
_DRAFT = re.compile(r"v(\d{6,})\.draft")
#: Names of tables; others are no tables, whatever somebody has put beside them.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: The number of versions kept: the current one, and the previous one for its remaining readers.
_KEPT = 2


def table_names(directory: Path) -> list[str]:
    """The tables of a directory that have a current version."""
    if not directory.is_dir():
        return []
    return sorted(p.name for p in directory.iterdir() if current_version(directory, p.name))


def current_version(directory: Path, name: str) -> Path | None:
    """The directory with the files of a table; None if there is no such table.

    Links and pointers may hold anything, so one that leads elsewhere names no version.
    """
    if _NAME.fullmatch(name) is None:
        return None
    place, pointer = directory / name, directory / name / _POINTER
    try:
        if place.is_symlink():
            held, version = _hidden(place), place.readlink().name
            found = place.readlink() == Path(held.name, version)
        else:
            held, version = place, pointer.read_text(encoding="ascii").strip()
            found = True
    except (OSError, UnicodeDecodeError):
        return None
    is_version = found and _VERSION.fullmatch(version) is not None
    return held / version if is_version and (held / version).is_dir() else None


def table_versions(directory: Path, name: str) -> list[Path]:
    """The versions of a table that are there, the oldest first."""
    place = directory / name
    found = [*_versions(place), *_versions(_hidden(place))]
    return [path for _, path in sorted(found)]


def next_version(directory: Path, name: str) -> Path:
    """A place for the files of a new version, which nobody reads yet."""
    place = directory / name
    found = [*_versions(place), *_versions(_hidden(place)), *_versions(_hidden(place), _DRAFT)]
    number = max((number for number, _ in found), default=0) + 1
    return _hidden(place) / f"v{number:06}"


def make_current(directory: Path, name: str, version: Path) -> None:
    """Lets readers see a new version; removes those that nobody reads any more."""
    place = directory / name
    draft = directory / f".{name}.{version.name}"
    draft.unlink(missing_ok=True)
    try:
        draft.symlink_to(Path(version.parent.name, version.name))
    except OSError:  # this file system has no links
        _point(place, version)
    else:
        _link(place, draft)
    flush_directory(directory)
    left = (path for _, path in _versions(_hidden(place), _DRAFT))
    for old in (*table_versions(directory, name)[:-_KEPT], *left):
        shutil.rmtree(old, ignore_errors=True)


def drop_table(directory: Path, name: str) -> None:
    place = directory / name
    if place.is_symlink():
        place.unlink()
    (place / _POINTER).unlink(missing_ok=True)
    for path in (place, _hidden(place)):
        shutil.rmtree(path, ignore_errors=True)


def _hidden(place: Path) -> Path:
    return place.with_name(f".{place.name}")


def _versions(place: Path, pattern: re.Pattern[str] = _VERSION) -> list[tuple[int, Path]]:
    if place.is_symlink() or not place.is_dir():
        return []
    matches = [(pattern.fullmatch(path.name), path) for path in place.iterdir()]
    return [(int(match[1]), path) for match, path in matches if match]


def _point(place: Path, version: Path) -> None:
    place.mkdir(exist_ok=True)
    target = place / version.name
    version.rename(target)
    shutil.rmtree(version.parent, ignore_errors=True)
    write_whole(place / _POINTER, f"{version.name}\n")


def _link(place: Path, draft: Path) -> None:
    """Replaces the link. A directory of an earlier version of mqis makes room for the first one."""
    if place.is_dir() and not place.is_symlink():
        before = _hidden(place) / _POINTER.lower()
        place.rename(before)
        draft.replace(place)
        shutil.rmtree(before, ignore_errors=True)
    else:
        draft.replace(place)
