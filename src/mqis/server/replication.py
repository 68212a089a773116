"""The replication of a directory server: a node made from the configuration, on its store."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mqis.config.logs import details
from mqis.config.replication import ReplicationSection
from mqis.config.sections import Config
from mqis.places import parse_place
from mqis.protocol.directory.change_notification import LocalQueueManager
from mqis.protocol.directory.export_format import ExportedServer
from mqis.protocol.directory.export_lines import remember_server, server_of_store
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.ownership import check_ready, enterprise
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.node.node import Node
from mqis.protocol.ports import Store, View
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.runtime.archive_thread import ArchiveThread
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.journal_thread import JournalThread
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.node.keyring import KeyRing, KeyStage, ServerKey
from mqis.runtime.node.members import Members
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.runtime.node.server_routes import ServerRouting
from mqis.runtime.node.signer import MachineSigner
from mqis.runtime.peers import is_loopback
from mqis.runtime.writer import GroupCommitWriter
from mqis.server.hosts import HostResolver
from mqis.server.identity import identify, seeds_of
from mqis.server.presence import publish
from mqis.storage.archive import Archiver
from mqis.storage.journal.belonging import belonging_fault
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.keeping import Keeper
from mqis.texts import host_port
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

log = logging.getLogger(__name__)

#: While a new server gets its directory: seconds between two checks, and between two log lines.
_LOOK_S = 0.1
_SAY_S = 5.0
#: Seconds between two looks at the key file.
_KEY_LOOK_S = 1.0


def settings_of(section: ReplicationSection) -> ReplicationSettings:
    """The settings of the machine: keys with the same name, and those that follow from others."""
    keys = {key.name for key in fields(section)}
    same: dict[str, Any] = {
        setting.name: getattr(section, setting.name)
        for setting in fields(ReplicationSettings)
        if setting.name in keys
    }
    return ReplicationSettings(
        **same,
        gather_s=section.gather_ms / 1000,
        max_retry_s=max(section.retry_s, ReplicationSettings().max_retry_s),
        repeat_s=0.4 * section.reply_wait_s,
        recovery_retry_s=min(section.recovery_wait_s / 8, ReplicationSettings().recovery_retry_s),
    )


@dataclass(frozen=True, slots=True)
class RunningJournal:
    """The journal's files, and the thread that writes them from the store."""

    files: Journal
    thread: JournalThread
    #: None: the journal is not archived.
    archiver: Archiver | None = None


@dataclass(slots=True)
class ReplicationService:
    """A running node; closing the stack that it was started with ends it."""

    me: Server
    driver: NodeDriver
    resolver: HostResolver
    store: Store
    key: ServerKey | None
    port: int
    #: None: no change notifications are sent.
    notifier: ChangeNotifier | None = None
    #: None: messages are never forwarded, whatever the directory says.
    routing: ServerRouting | None = None
    #: None: no journal is kept.
    journal: RunningJournal | None = None

    def reread(self, config: Config) -> None:
        """Applies the keys that may change while it runs: addresses of others, seeds, and times.

        After a ``ConfigError`` nothing has changed.
        """
        self.driver.members.use({seed.id: seed for seed in seeds_of(config)})
        self.resolver.use(config.hosts.entries)
        self.driver.node.replication.settings = settings_of(config.replication)

    async def owned(self) -> list[str]:
        """The names of the partitions that this server is the authority of."""
        return await self.driver.inspect(lambda tx, _memory: list(_owned(tx, self.me)))

    # --- a new server -----------------------------------------------------------------------------

    async def bootstrapped(self) -> None:
        """Waits until there is a directory to serve; a new server gets it from the others."""
        if await self.driver.inspect(lambda tx, _memory: _is_ready(tx, self.me)):
            return
        began = report_at = time.monotonic()
        while (lacking := await self.driver.inspect(self._lacking)) is not None:
            if time.monotonic() >= report_at:
                report_at += _SAY_S
                log.info("waiting for the directory", extra=details(lacks=lacking))
            await asyncio.sleep(_LOOK_S)
        seconds = round(time.monotonic() - began, 1)
        with self.store.read() as view:
            objects = sum(view.count(kind) for kind in ObjectType)
        log.info("the directory is here", extra=details(objects=objects, seconds=seconds))

    def _lacking(self, view: View, memory: Memory) -> str | None:
        """The part that the first synchronisation has not brought yet; None if complete."""
        if enterprise(view) is None:
            return f"the enterprise, from {self.me.psc or self.me.pec}"
        if view.get(ObjectType.SITE, self.me.site) is None:
            return "the own site"
        if self.me.site in memory.recoveries:
            return "the own partition, from the other servers"
        for partition in (ENTERPRISE_PARTITION, self.me.site):
            progress = memory.partitions.get(partition)
            if progress is not None and (progress.asked is not None or progress.in_round):
                return f"the rest of partition {partition}"
        return None

    async def publish(self) -> None:
        """Keeps our keys and our role right in the directory, also during a rotation of the key."""
        news = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_keys(news))
            while True:
                await publish(self.store, self.me, self.driver, self.key, news)
                await news.wait()

    async def _watch_keys(self, news: asyncio.Event) -> None:
        """Takes each step of a rotation from the key file, and marks seeds that are spent."""
        members = self.driver.members
        seen = None if self.key is None else _identity(self.key.path)
        while True:
            if members.seeds_to_mark:
                members.seeds_to_mark = False
                with suppress(StorageError):  # the driver reports it
                    await self.driver.inspect(lambda tx, _memory: members.mark_seeds(tx))
            await asyncio.sleep(_KEY_LOOK_S)
            if self.key is None:
                continue
            found = _identity(self.key.path)
            if found not in (None, seen) and self._take_key(self.key):
                news.set()
            seen = found
            if self.key.ring.stage is not KeyStage.STEADY:
                news.set()  # nobody else may have changed the list meanwhile

    def _take_key(self, key: ServerKey) -> bool:
        """Reads the key file again; returns whether it is the next step of a rotation."""
        try:
            ring = KeyRing.open(key.path, create=False)
        except MqisError as error:
            log.error("the key file was changed and cannot be used; the old key signs: %s", error)
            return False
        if not ring.succeeds(key.ring):
            log.warning(
                "the key file has a key that no other server knows; it is used after a restart. "
                "'mqis key rotate' makes a new key known first"
            )
            return False
        before, key.ring = key.ring, ring
        if before.signing.key_id != ring.signing.key_id and self.journal is not None:
            self.journal.files.use_key(ring.signing)
        log.info(
            "the signing key is rotated",
            extra=details(stage=ring.stage.value, signs_with=ring.signing.key_id.hex()[:16]),
        )
        return True


def _identity(path: Path) -> tuple[int, int, int] | None:
    """The edition of a file, None if it cannot be read; a file that is replaced has another."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _is_ready(view: View, me: Server) -> bool:
    try:
        check_ready(view, me.site)
    except DirectoryError:
        return False
    return True


def _owned(view: View, me: Server) -> list[str]:
    names = []
    for state in view.partitions():
        if owns(view, me, state.id):
            site = view.get(ObjectType.SITE, state.id)
            enterprise_wide = state.id == ENTERPRISE_PARTITION
            name = "enterprise" if enterprise_wide else str(state.id)
            names.append(name if site is None else site.path or name)
    return names


# --- starting -------------------------------------------------------------------------------------


def check_signing(config: Config) -> None:
    """Warns if unsigned messages are accepted, and refuses that beyond loopback."""
    section = config.replication
    if section.signing is SigningPolicy.REQUIRE:
        return
    address = section.listen or config.rpc.listen
    if not is_loopback(address) and not section.unsigned_beyond_loopback:
        raise MqisError(
            f'replication.signing is "{section.signing.value}", so anyone who can reach {address} '
            'could act as any server of the enterprise; set replication.signing = "require", or '
            "replication.listen to a loopback address, or, on a private network, "
            "replication.unsigned_beyond_loopback = true"
        )
    log.warning(
        "unsigned messages are accepted: anyone who can reach the queue port can act as any "
        'server of the enterprise; set replication.signing = "require"',
        extra=details(signing=section.signing.value, listen=address),
    )


def limits_of(section: ReplicationSection) -> QueueingLimits:
    return QueueingLimits(
        retry_s=section.connect_retry_s,
        max_sessions=section.max_sessions,
        max_connections=section.max_connections,
        max_connections_per_address=section.max_connections_per_address,
        silence_timeout_s=section.silence_s,
    )


async def start_replication(
    config: Config,
    store: Store,
    writer: GroupCommitWriter,
    stack: AsyncExitStack,
    drain: Callable[[], Awaitable[None]],
    *,
    restored: bool = False,
) -> ReplicationService:
    """Starts a node; its clean-up is pushed on ``stack``.

    ``drain`` ends the writer, after the node and before the journal. ``restored``: the store is
    from a backup, so the other servers are asked before this server makes changes.
    """
    section = config.replication
    check_signing(config)
    with store.read() as view:
        me = identify(config, view)
        remembered = server_of_store(view)
    if remembered != (named := ExportedServer(me.id, me.name)):
        with store.write() as tx:
            remember_server(tx, named)
    seeds = {seed.id: seed for seed in seeds_of(config)}
    policy = section.signing
    members = Members(store, seeds, keys_required=policy is SigningPolicy.REQUIRE)
    with store.write() as tx:
        members.mark_seeds(tx)
    unsigned = policy is SigningPolicy.NONE
    # A server that does not sign publishes its key all the same: others may require it later.
    keyless = unsigned and not Path(section.key).exists()
    key = None if keyless else ServerKey.open(Path(section.key))
    signer = None if key is None or unsigned else MachineSigner(key, members.keys_of)
    routing = ServerRouting(store, me.id, members) if section.route else None
    queue = QueueingMachine(
        me.id,
        me.name,
        # Replication numbers its messages itself, from its store; these are far from them.
        MessageIdCounter((int(time.time()) << 8) + (1 << 30)),
        limits=limits_of(section),
        peers=routing or members,
        signer=signer,
        policy=policy,
        router=None if routing is None else routing.router,
        counts=None if routing is None else routing.counts,
    )
    journal = _start_journal(section, store, me, key, stack)
    stack.push_async_callback(drain)
    entropy = SystemEntropy()
    replication = Replication(me, entropy, settings_of(section), journaled=journal is not None)
    resolver = HostResolver(store, config.hosts.entries, section.port)
    driver = NodeDriver(
        Node(replication, queue, entropy),
        writer,
        members,
        resolver,
        on_commit=(lambda: None) if journal is None else journal.thread.wake,
        on_outcome=(lambda _outcome: None) if routing is None else routing.handle,
        restored=restored,
    )
    stack.callback(_log_end, driver)
    await stack.enter_async_context(driver)
    port = await _listen(driver, config)
    log.info("replicating", extra=details(server=me.name, role=me.role.value, port=port))
    service = ReplicationService(
        me, driver, resolver, store, key, port, routing=routing, journal=journal
    )
    if routing is not None:
        routing.start(queue.statistics)
        stack.push_async_callback(routing.close)
    if section.notify:
        service.notifier = ChangeNotifier(
            LocalQueueManager(me.name, me.id),
            resolver,
            peers=members,
            signer=signer,
            policy=policy,
        )
        stack.push_async_callback(service.notifier.close)
    return service


def _log_end(driver: NodeDriver) -> None:
    counted, transport = driver.statistics, driver.node.queue.statistics
    log.info(
        "replication ended",
        extra=details(
            sent=transport.sent,
            received=transport.received,
            dropped=transport.refused - transport.duplicates,
            refused=counted.refusals,
            forwarded=counted.forwarded,
        ),
    )


def _start_journal(
    section: ReplicationSection,
    store: Store,
    me: Server,
    key: ServerKey | None,
    stack: AsyncExitStack,
) -> RunningJournal | None:
    if not section.journal:
        if section.archive:
            raise MqisError(
                "replication.archive is set, but there is no journal to archive; set "
                "replication.journal as well"
            )
        return None
    with store.read() as view:
        fault = belonging_fault(view, Path(section.journal))
    if fault is not None:
        raise MqisError(fault)
    sealing = None if key is None else key.ring.signing
    journal = Journal(section.journal, me.name, me.id, key=sealing)
    stack.callback(journal.close)
    for text in journal.mended:
        log.warning("journal: %s", text)
    archiver = None
    if section.archive:
        archiver = Archiver(journal.directory, parse_place(section.archive), me.id)
    keeper = Keeper(
        store,
        journal,
        every=section.snapshot_records,
        keep=section.keep_snapshots,
        seal_s=section.seal_hours * 3600,
        is_archived=None if archiver is None else archiver.is_archived,
    )
    if archiver is not None:
        archiving = ArchiveThread(archiver, keeper.prune, _log_archive)
        stack.push_async_callback(asyncio.to_thread, archiving.close)
    thread = JournalThread(keeper)
    stack.push_async_callback(asyncio.to_thread, thread.close)
    return RunningJournal(journal, thread, archiver)


def _log_archive(error: StorageError | None) -> None:
    if error is None:
        log.info("the journal is archived again")
    else:
        log.error("the journal is not archived, and keeps what is not: %s", error)


async def _listen(driver: NodeDriver, config: Config) -> int:
    section = config.replication
    address = section.listen or config.rpc.listen
    try:
        port = await driver.listen(address, section.port)
        if section.ping:
            await driver.endpoint.listen_ping(address, section.ping_port)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EADDRNOTAVAIL)
        raise MqisError(
            f"cannot listen for messages at {host_port(address, section.port)}: {reason}; choose "
            "another with replication.listen and replication.port (0: a free one)"
        ) from error
    return port
