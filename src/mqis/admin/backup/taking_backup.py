"""Takes a backup while the server runs.

The database makes a consistent copy of the store. The copy is checked, and packed with
configuration, accounts and key. The file is read back before it gets its final name, which is a
new one: only ``force`` replaces a file that exists, and only if that is a backup too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from mqis import __version__
from mqis.admin.backup.backup_file import Archive, digest_of, explained, write_archive
from mqis.admin.backup.manifest import (
    SECRETS,
    Content,
    Manifest,
    PartitionEntry,
)
from mqis.config.errors import ConfigError
from mqis.config.sections import Config, ConfiguredRole
from mqis.config.stores import open_store, without_passwords
from mqis.files import (
    FILE_MODE,
    draft_directory,
    flush_directory,
    make_private_directory,
    system_reason,
    write_whole,
)
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import View
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.replication.admission import owns
from mqis.server.identity import identify, server_name
from mqis.storage.copying import copy_to_file
from mqis.storage.database import DatabaseStore
from mqis.storage.outbox import last_lsn
from mqis.storage.schema import VERSION
from mqis.storage.sqlite import SqliteStore
from mqis.texts import file_stamp
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

SUFFIX = ".mqisbackup"
#: The ends of a name that can only be a directory's.
_DIRECTORY_ENDS = ("/", "/.", "/..")


@dataclass(frozen=True, slots=True)
class Taken:
    """A backup that was written and read back."""

    path: Path
    size: int
    manifest: Manifest
    #: The signing key that should be in the backup and is gone: a restored server would be refused.
    missing_key: Path | None = None


def take_backup(
    config: Config,
    to: str | Path,
    config_file: Path | None,
    *,
    secrets: bool = True,
    force: bool = False,
) -> Taken:
    """Writes a backup to the file or directory ``to``; without ``config_file``, store only."""
    now = datetime.now(UTC)
    target = _place(to, f"{server_name(config)}-{file_stamp(now.timestamp())}")
    _refuse_occupied(target, force=force)
    with _staging(target) as staging:
        files = _gather(config, staging, config_file, secrets=secrets)
        manifest = _describe(config, files[Content.STORE], now)
        manifest = replace(manifest, files=tuple(digest_of(path) for path in files.values()))
        draft = staging / "draft"
        with explained(target):
            write_archive(draft, manifest, files)
        Archive(draft).verify()
        with explained(target):
            size = draft.stat().st_size
            _publish(draft, target, force=force)
            flush_directory(target.parent)
    key = Path(config.replication.key)
    lost = secrets and config_file is not None and Content.KEY not in files
    replicates = config.server.role is not ConfiguredRole.NONE
    unsigned = config.replication.signing is SigningPolicy.NONE
    return Taken(target, size, manifest, key if lost and replicates and not unsigned else None)


# --- place ----------------------------------------------------------------------------------------


def _place(to: str | Path, name: str) -> Path:
    """The file to write: ``to`` itself, or a new file in the directory that it names.

    A name that ends in a slash is a directory, which is made if it is missing.
    """
    target = Path(to)
    if str(to).endswith(_DIRECTORY_ENDS):
        with explained(target):
            make_private_directory(target)
    if not target.is_dir():
        return target
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for each in names if not os.path.lexists(path := target / f"{each}{SUFFIX}"))


def _refuse_occupied(target: Path, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if target.exists() and not target.is_file():
        raise MqisError(f"{target}: is neither a file nor a directory; name another place")
    try:
        Archive(target)
    except MqisError as error:
        raise MqisError(
            f"{target}: this file exists already and is not an intact backup, so nothing replaces "
            "it; name another file or a directory"
        ) from error
    if not force:
        raise MqisError(
            f"{target}: this backup exists already; name another file or a directory, or replace "
            "it with --force"
        )


def _publish(draft: Path, target: Path, *, force: bool) -> None:
    """Gives the draft its final name; a file that came to be there meanwhile is not replaced."""
    if force:
        _refuse_occupied(target, force=True)
        draft.replace(target)
        return
    try:
        os.link(draft, target)
    except FileExistsError:
        _refuse_occupied(target, force=False)
    except OSError:  # a file system without hard links
        _refuse_occupied(target, force=False)
        draft.rename(target)


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A staging directory beside the target; files of an interrupted backup are deleted."""
    with ExitStack() as held:
        with explained(target):
            staging = held.enter_context(draft_directory(target))
        yield staging


# --- files ----------------------------------------------------------------------------------------


def _gather(
    config: Config, staging: Path, config_file: Path | None, *, secrets: bool
) -> dict[str, Path]:
    """Copies all files into the staging directory; returns them by their names in the backup."""
    files: dict[str, Path] = {Content.STORE: staging / Content.STORE}
    copy_of_store(config.store.url, files[Content.STORE])
    if config_file is None:
        return files
    sources = {
        Content.CONFIG: config_file,
        Content.ACCOUNTS: Path(config.security.accounts),
        Content.KEY: Path(config.replication.key),
    }
    if config.security.keytab:
        sources[Content.KEYTAB] = Path(config.security.keytab)
    for content, source in sources.items():
        if content in SECRETS and (not secrets or not source.exists()):
            continue
        data = _read(source)
        if content is Content.CONFIG and not secrets:
            text = data.decode("utf-8", "surrogateescape")
            data = without_passwords(text).encode("utf-8", "surrogateescape")
        files[content] = staging / content
        with explained(files[content]):
            write_whole(files[content], data)
    return files


def copy_of_store(url: str, path: Path) -> None:
    """Makes a consistent, checked copy of a store that may be in use."""
    with closing(open_store(url)) as store:
        if not isinstance(store, DatabaseStore):
            raise MqisError("a store in memory cannot be backed up: use a file or a database")
        copy_to_file(store, path)
    path.chmod(FILE_MODE)
    with closing(SqliteStore(path, create=False)) as copy:
        faults = copy.check()
    if faults:
        raise MqisError(
            f"the store is damaged and cannot be backed up: {faults[0]}; 'mqis store check' lists "
            "all faults, and an older backup may be intact"
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MqisError(f"{path}: cannot be read: {system_reason(error)}") from error


# --- manifest -------------------------------------------------------------------------------------


def _describe(config: Config, store: Path, now: datetime) -> Manifest:
    """Makes the manifest from the copy, so that it matches the copied store."""
    kind = "postgresql" if config.store.url.startswith("postgres") else "sqlite"
    with closing(SqliteStore(store, create=False)) as copy:
        with copy.reading() as rows:
            lsn = last_lsn(rows)
        with copy.read() as view:
            root = enterprise(view)
            machine = view.find(ObjectType.MACHINE, server_name(config))
            return Manifest(
                created=now.isoformat(timespec="seconds"),
                mqis=__version__,
                enterprise="" if root is None else root.path or "",
                server=server_name(config),
                role=config.server.role.value,
                site=config.server.site,
                id="" if machine is None else str(machine.id),
                kind=kind,
                schema=VERSION,
                journal_lsn=lsn,
                objects={kind.label: view.count(kind) for kind in ORDER if view.count(kind)},
                partitions=tuple(numbers_of(config, view)),
            )


def numbers_of(config: Config, view: View) -> Iterator[PartitionEntry]:
    """The numbers of each partition, and whether the server is its authority."""
    me = None
    if config.server.role is not ConfiguredRole.NONE:
        try:
            me = identify(config, view)
        except ConfigError:
            me = None  # a server that has not received its directory yet
    for state in view.partitions():
        site = view.get(ObjectType.SITE, state.id)
        name = "enterprise" if state.id == ENTERPRISE_PARTITION else str(state.id)
        yield PartitionEntry(
            str(state.id),
            name if site is None else site.path or name,
            state.owner,
            me is not None and owns(view, me, state.id),
            str(state.last_seq),
            str(state.purged_seq),
        )
