"""Restores a backup: all of it is verified first, and then all files are restored or none.

New files are written beside the old ones. Then the old store is moved aside, the other files are
replaced, and the new store comes last: a crash in between leaves a server without a store, which
does not start, and repeating the command completes the restore. No existing file is deleted. The
accounts that the servers of a run directory share are not of one server: they stay as they are. So
does a signing key that is there: it may be newer than the backup's, and the others know it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from mqis.admin.backup.backup_file import Archive, explained
from mqis.admin.backup.manifest import Content, Manifest
from mqis.admin.backup.restored_journal import begin_journal, last_lsn
from mqis.admin.backup.taking_backup import numbers_of
from mqis.config.claims import claimed_file, claimed_store
from mqis.config.errors import ConfigError
from mqis.config.file import DEFAULT_NAME, load, parse, relative
from mqis.config.nodes import ACCOUNTS, NodePlace, load_nodes, supervised_place
from mqis.config.sections import Config, ConfiguredRole
from mqis.config.stores import file_of
from mqis.files import draft_directory, flush_directory, make_private_directory
from mqis.protocol.errors import StorageError
from mqis.runtime.node.keyring import KeyRing
from mqis.server.identity import server_name
from mqis.server.restoremark import put_mark
from mqis.storage.copying import copy_rows, is_empty
from mqis.storage.database import DatabaseStore
from mqis.storage.sqlite import SqliteStore, user_of
from mqis.texts import file_stamp, size
from mqis.wire.errors import MqisError

#: Suffixes of the files of an SQLite store.
_COMPANIONS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The operator's options."""

    #: The configuration: written here, or with ``store_only`` the existing one.
    config: Path = Path(DEFAULT_NAME)
    store_only: bool = False
    #: True if existing files may be moved aside.
    force: bool = False
    #: True if files outside the configuration's directory may be written.
    outside: bool = False


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The steps of a restore, verified before anything is changed."""

    archive: Archive
    config: Config
    request: RestoreRequest
    #: The destination of each file; without the store if that goes into a database.
    files: dict[Content, Path]
    #: Existing files, which are moved aside.
    occupied: tuple[Path, ...]
    stamp: str
    #: The server of a run directory that is restored, and the shared accounts file that is kept.
    place: NodePlace | None = None
    kept: Path | None = None
    #: The present signing key, which is kept; None if there is none.
    kept_key: Path | None = None

    @property
    def manifest(self) -> Manifest:
        return self.archive.manifest

    @property
    def journal(self) -> Path | None:
        directory = self.config.replication.journal
        return Path(directory) if directory else None

    def aside(self, path: Path) -> Path:
        return path.with_name(f"{path.name}.before-{self.stamp}")


@dataclass(slots=True)
class Restored:
    """A restore that was done."""

    plan: RestorePlan
    moved: list[tuple[Path, Path]] = field(default_factory=list)


def plan_restore(archive: Path, request: RestoreRequest) -> RestorePlan:
    """Verifies the whole backup and checks the destinations; changes nothing."""
    opened = Archive(archive)
    _require_room(opened, request.config.absolute().parent)
    small = opened.verify()
    config = _configuration(opened, small, request)
    files = _destinations(opened.manifest, config, request)
    run, place = supervised_place(request.config) or (None, None)
    shared = None if run is None else run / ACCOUNTS
    accounts, kept = files.get(Content.ACCOUNTS), None
    if accounts is not None and shared is not None and _plain(accounts) == _plain(shared):
        kept = shared if shared.exists() else None
    if kept is not None:
        del files[Content.ACCOUNTS]
    kept_key = _present_key(files)
    if kept_key is not None:
        del files[Content.KEY]
    written = _written_paths(config, files)
    occupied = tuple(path for path in written if path.exists())
    _refuse_another_server(opened, config, request)
    _refuse(config, request, files, occupied, shared=shared)
    stamp = file_stamp(time.time())
    return RestorePlan(opened, config, request, files, occupied, stamp, place, kept, kept_key)


def _present_key(files: dict[Content, Path]) -> Path | None:
    """The signing key that is there, if it can be used."""
    path = files.get(Content.KEY)
    if path is None or not path.exists():
        return None
    try:
        KeyRing.open(path, create=False)
    except MqisError:
        return None
    return path


def _require_room(archive: Archive, home: Path) -> None:
    """Refuses a backup that would fill the disk, before it is unpacked."""
    there = next(path for path in (home, *home.parents) if path.exists())
    needed = sum(entry.size for entry in archive.manifest.files)
    free = shutil.disk_usage(there).free
    if needed > free:
        raise MqisError(
            f"{archive.path}: not enough space to restore: it unpacks to {size(needed)}, and "
            f"{there} has {size(free)} free; free some space, or choose another place with --config"
        )


def _configuration(archive: Archive, small: dict[str, bytes], request: RestoreRequest) -> Config:
    if request.store_only or not archive.manifest.holds(Content.CONFIG):
        return load(request.config)
    try:
        content = tomllib.loads(small[Content.CONFIG].decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MqisError(f"{archive.path}: its {Content.CONFIG} is not TOML: {error}") from error
    return relative(parse(content, f"{archive.path}: {Content.CONFIG}"), request.config)


def _destinations(
    manifest: Manifest, config: Config, request: RestoreRequest
) -> dict[Content, Path]:
    """The destinations of the files, as the configuration names them."""
    files: dict[Content, Path] = {}
    if not request.store_only:
        places = {
            Content.CONFIG: request.config.absolute(),
            Content.ACCOUNTS: Path(config.security.accounts),
            Content.KEY: Path(config.replication.key),
            Content.KEYTAB: Path(config.security.keytab),
        }
        files = {content: at for content, at in places.items() if manifest.holds(content)}
    store = file_of(config.store.url)
    if store is not None:
        files[Content.STORE] = store
    return files


def _written_paths(config: Config, files: dict[Content, Path]) -> list[Path]:
    """All paths that are written to, including the journal's directory."""
    journal = config.replication.journal
    return [*files.values(), *([Path(journal)] if journal else [])]


def _refuse_another_server(archive: Archive, config: Config, request: RestoreRequest) -> None:
    """Refuses a configuration or a place of another server; ``force`` does not change that."""
    manifest = archive.manifest
    archived = (manifest.server.lower(), manifest.role)
    if archived != (server_name(config).lower(), config.server.role.value):
        raise MqisError(
            f"{archive.path}: this backup is of {manifest.server} ({manifest.role}), but the "
            f"configuration is of {server_name(config)} ({config.server.role.value}); to rebuild "
            "a server from another one's copy, use mqis promote --rebuild"
        )
    run, place = supervised_place(request.config) or (None, None)
    there = _server_at(request.config) if place is None else place.name
    if there is None or there.lower() == manifest.server.lower():
        return
    file = quote(str(archive.path))
    way = f"mqis restore {file} --config DIRECTORY/mqis.toml, of another directory"
    if run is not None and any(n.name.lower() == manifest.server.lower() for n in load_nodes(run)):
        force = " --force" if request.force else ""
        way = f"mqis restore {file} --run {quote(str(run))}{force}"
    raise MqisError(
        f"{archive.path}: this backup is of {manifest.server}, but {request.config} is the place "
        f"of {there}; run: {way}"
    )


def _server_at(config: Path) -> str | None:
    """The server whose configuration is there; None if there is none that can be read."""
    try:
        return server_name(load(config))
    except ConfigError:
        return None


def _refuse(
    config: Config,
    request: RestoreRequest,
    files: dict[Content, Path],
    occupied: tuple[Path, ...],
    *,
    shared: Path | None,
) -> None:
    home = request.config.absolute().parent
    allowed = [] if shared is None else [_plain(shared)]
    plain = [_plain(path) for path in _written_paths(config, files)]
    plain = [path for path in plain if path not in allowed]
    outside = [path for path in plain if not path.is_relative_to(_plain(home))]
    if outside and not request.outside and not request.store_only:
        raise MqisError(
            f"the configuration in the backup puts {_listed(outside)} outside {home}; if you trust "
            "it, allow that with --allow-outside"
        )
    store = files.get(Content.STORE)
    if store is not None and store.exists() and (user := user_of(store)):
        raise MqisError(f"{store}: {user} has this store open; stop it first")
    if occupied and not request.force:
        raise MqisError(
            f"these files exist already: {_listed(occupied)}; --force moves them aside and goes on"
        )


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


def _listed(paths: list[Path] | tuple[Path, ...]) -> str:
    return ", ".join(map(str, paths))


# --- restoring ------------------------------------------------------------------------------------


def restore(plan: RestorePlan) -> Restored:
    """Carries out the plan; after an error, all files are as before."""
    home = plan.request.config.absolute().parent
    with explained(home):
        make_private_directory(home)
    store = plan.files.get(Content.STORE)
    claim = nullcontext() if store is None else claimed_file(store)
    with _alone(home), claim, _drafts(plan, home) as drafts, _journal_draft(plan) as journal:
        plan.archive.extract({str(content): path for content, path in drafts.items()})
        _prepare(plan, drafts[Content.STORE], journal)
        done = Restored(plan)
        try:
            _exchange(plan, drafts, journal, done)
        except BaseException:
            for old, new in reversed(done.moved):
                new.rename(old)
            raise
    return done


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise MqisError(f"{home}: another process is restoring here; wait until it ends") from error
    finally:
        os.close(lock)


@contextmanager
def _drafts(plan: RestorePlan, home: Path) -> Iterator[dict[Content, Path]]:
    """The draft of each file, beside its place; drafts of an interrupted restore are deleted."""
    places = {Content.STORE: home / Content.STORE, **plan.files}
    drafts = {content: _draft(path) for content, path in places.items()}
    try:
        for path in drafts.values():
            with explained(path):
                make_private_directory(path.parent)
                for companion in _COMPANIONS:
                    Path(f"{path}{companion}").unlink(missing_ok=True)
        yield drafts
    finally:
        for path in drafts.values():
            for companion in _COMPANIONS:
                with suppress(OSError):
                    Path(f"{path}{companion}").unlink(missing_ok=True)


@contextmanager
def _journal_draft(plan: RestorePlan) -> Iterator[Path | None]:
    """The directory in which the new journal begins; None if the server keeps none."""
    with ExitStack() as held:
        draft = None
        if plan.journal is not None:
            with explained(plan.journal):
                draft = held.enter_context(draft_directory(plan.journal))
        yield draft


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _prepare(plan: RestorePlan, draft: Path, journal: Path | None) -> None:
    """Checks the unpacked store, marks it as restored, and begins a new journal."""
    manifest = plan.manifest
    with closing(SqliteStore(draft, create=False)) as store:
        faults = store.check()
        with store.read() as view:
            numbers = tuple(numbers_of(plan.config, view))
        expected = [(p.id, p.last_seq, p.purged_seq) for p in manifest.partitions]
        if not faults and [(p.id, p.last_seq, p.purged_seq) for p in numbers] != expected:
            faults = ["its sequence numbers are not those of the manifest"]
        if faults:
            raise MqisError(f"{plan.archive.path}: its store is damaged: {faults[0]}")
        if (
            plan.config.server.role is not ConfiguredRole.NONE
        ):  # else there are no other servers to ask
            with store.write() as tx:
                put_mark(tx, f"backup of {manifest.server}, {manifest.created}")
        begin_journal(store, journal, last_lsn(plan.journal))


def _exchange(
    plan: RestorePlan, drafts: dict[Content, Path], journal: Path | None, done: Restored
) -> None:
    store = plan.files.get(Content.STORE)
    old = [] if store is None else [Path(f"{store}{c}") for c in _COMPANIONS]
    for path in [*old, *(p for p in plan.occupied if p != store)]:
        if path.exists():
            _move(path, _backup_name(plan, store, path), done)
    if journal is not None and plan.journal is not None:
        _move(journal, plan.journal, done)
    for content, target in plan.files.items():
        if content is not Content.STORE:
            _move(drafts[content], target, done)
    if store is not None:
        _move(drafts[Content.STORE], store, done)
    else:
        _into_database(plan, drafts[Content.STORE])


def _backup_name(plan: RestorePlan, store: Path | None, path: Path) -> Path:
    """The name for a moved file; SQLite needs the store's companions beside it."""
    for companion in _COMPANIONS[1:]:
        if store is not None and path == Path(f"{store}{companion}"):
            return Path(f"{plan.aside(store)}{companion}")
    return plan.aside(path)


def _move(old: Path, new: Path, done: Restored) -> None:
    with explained(new):
        old.rename(new)
        done.moved.append((old, new))
        flush_directory(new.parent)


def _into_database(plan: RestorePlan, draft: Path) -> None:
    """Copies all rows into the database in one transaction."""
    url = plan.config.store.url
    with (
        closing(SqliteStore(draft, create=False)) as source,
        claimed_store(url, create=True) as target,
    ):
        if not isinstance(target, DatabaseStore):
            raise MqisError("a store in memory cannot be restored: set another store.url")
        try:
            copy_rows(source, target, replace=plan.request.force)
        except StorageError:
            with target.reading() as rows:
                taken = not plan.request.force and not is_empty(rows)
            if taken:
                raise MqisError(
                    "the database holds a directory already; --force replaces it permanently"
                ) from None
            raise
