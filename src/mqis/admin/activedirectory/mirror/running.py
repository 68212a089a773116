"""Runs a mirror: connections, store, journal, and the end in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mqis.admin.activedirectory.connecting import (
    ConnectingOptions,
    RootEntry,
    connect,
    explained,
)
from mqis.admin.activedirectory.mirror.feed import read_identity
from mqis.admin.activedirectory.mirror.following import DirectoryWatch, Report, follow
from mqis.admin.activedirectory.mirror.round import EstateMirror, MirrorRound
from mqis.admin.activedirectory.mirror.writing import mirror_identity
from mqis.protocol.errors import StorageError
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ports import Store
from mqis.runtime.activedirectory.reading import read_forest
from mqis.runtime.journal_thread import JournalThread
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.storage.journal.belonging import belonging_fault
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.keeping import Keeper
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName

log = logging.getLogger(__name__)

#: Records after which the journal gets another snapshot; all history is kept.
_SNAPSHOT_RECORDS = 100_000


@dataclass(frozen=True, slots=True)
class MirrorPlaces:
    """Where a mirror keeps what it reads; ``journal`` None keeps no journal."""

    store: Store
    journal: Path | None


def name_of_domain(root: RootEntry) -> str:
    """The DNS name of a domain: ``corp.example`` of ``DC=corp,DC=example``."""
    return ".".join(part.value for part in DistinguishedName.parse(root.domain).parts)


async def mirror_once(
    domains: Sequence[ConnectingOptions], places: MirrorPlaces, *, compare: bool = False
) -> MirrorRound:
    """Makes one round, with or without a comparison; every failure is told at once."""
    async with _mirroring(domains, places) as mirror:
        try:
            return await mirror.round(compare=compare)
        except LdapError as error:
            raise explained(error) from error


async def mirror_on(
    domains: Sequence[ConnectingOptions],
    places: MirrorPlaces,
    report: Report,
    stop: asyncio.Event,
    *,
    interval_s: float,
) -> None:
    """Follows the directory until ``stop`` is set. The first connection has to succeed."""
    async with _mirroring(domains, places) as mirror:
        watching = [(await connect(options))[0] for options in domains]
        watch = DirectoryWatch([(client, await read_forest(client)) for client in watching])
        try:
            await follow(mirror, watch, report, stop, interval_s=interval_s)
        finally:
            await watch.close()


@asynccontextmanager
async def _mirroring(
    domains: Sequence[ConnectingOptions], places: MirrorPlaces
) -> AsyncIterator[EstateMirror]:
    async with AsyncExitStack() as stack:
        clients: list[LdapDirectoryClient] = []
        roots: list[RootEntry] = []
        for options in domains:
            client, root = await connect(options)
            stack.push_async_callback(client.close)
            clients.append(client)
            roots.append(root)
        name = name_of_domain(roots[0])
        identifiers = [(await read_identity(client)).domain for client in clients]
        with places.store.write() as tx:
            identity = mirror_identity(tx, identifiers)
        wake = None
        if places.journal is not None:
            thread = _start_journal(places.store, places.journal, name, identity, stack)
            wake = thread.wake
        yield EstateMirror(clients[0], places.store, name, wake, others=clients[1:])


def _start_journal(
    store: Store, directory: Path, name: str, identity: Guid, stack: AsyncExitStack
) -> JournalThread:
    with store.read() as view:
        fault = belonging_fault(view, directory)
    if fault is not None:
        raise StorageError(fault)
    journal = Journal(directory, name, identity)
    stack.callback(journal.close)
    for text in journal.mended:
        log.warning("journal: %s", text)
    keeper = Keeper(store, journal, every=_SNAPSHOT_RECORDS, keep=0)
    thread = JournalThread(keeper)
    stack.push_async_callback(asyncio.to_thread, thread.close)
    return thread
