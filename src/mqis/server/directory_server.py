"""One directory server from a configuration: store, writer, RPC port, endpoint mapper.

async with DirectoryServer(config) as server:
    print(server.ready.port)
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mqis.config.claims import claimed_store
from mqis.config.errors import ConfigError
from mqis.config.file import Reread, reread
from mqis.config.logs import details
from mqis.config.sections import ActingAs, Config, ConfiguredRole, Gss, SecuritySection
from mqis.config.stores import directory_urls, file_of, without_passwords
from mqis.files import system_reason
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.directory.guard import Allowance
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.discovery.limiter import RateLimit
from mqis.protocol.errors import MissingStore
from mqis.protocol.ports import Store, View
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.protocol.security.logons import LogonLimits
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.budgets import Budgets, handle_budget, lookup_budget, memory_budget
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.dscomm2 import Dscomm2Service
from mqis.runtime.directory.readers import SESSIONS, THREADS, StoreReaders
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.runtime.peers import is_loopback
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.writer import GroupCommitWriter
from mqis.server.administration import AdministrationService, Reply
from mqis.server.discovery_responder import start_discovery
from mqis.server.hosts import HostResolver
from mqis.server.identity import seeds_of, server_name
from mqis.server.logon import AuditedAuthenticator, LiveAccounts
from mqis.server.loss import ways_back
from mqis.server.monitoring.monitoring_endpoint import MonitoringService, start_monitoring
from mqis.server.monitoring.status_sources import Sources
from mqis.server.notification import start_notifier
from mqis.server.replication import ReplicationService, start_replication
from mqis.server.restoremark import forget_when_recovered, mark_of
from mqis.server.session_service import SessionList
from mqis.storage.database import DatabaseStore
from mqis.storage.row_conversion import remember
from mqis.texts import host_port
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.serverlist import ServerSpec

if TYPE_CHECKING:
    from mqis.runtime.activedirectory.store import ActiveDirectoryStore
    from mqis.server.pass_through import ActingAsCallers
    from mqis.server.undeletion.undelete_service import Undeletion

log = logging.getLogger(__name__)

#: Seconds that running calls have to end when the server stops.
GRACE_S = 5.0
#: Seconds between two looks at the accounts file.
ACCOUNTS_S = 1.0

#: The endpoint mapper's annotations of the two interfaces.
_ANNOTATIONS = {
    dscomm.SYNTAX: "Message Queuing - directory service",
    dscomm2.SYNTAX: "Message Queuing - directory service, second interface",
}


@dataclass(frozen=True, slots=True)
class ServerPosition:
    """The enterprise, the name and the site of this server."""

    enterprise: str
    server: str
    site: DirectoryObject


@dataclass(frozen=True, slots=True)
class Ready:
    """The addresses and partitions of a server that is ready for calls."""

    enterprise: str
    server: str
    site: str
    address: str
    port: int
    #: None: there is no endpoint mapper.
    mapper_port: int | None
    #: The UDP port of discovery; None: there is none.
    discovery_port: int | None = None
    role: str = "none"
    #: The TCP port of the queue manager; None: nothing is replicated.
    queue_port: int | None = None
    #: The partitions that this server is the authority of.
    partitions: tuple[str, ...] = ()
    #: The TCP port of /status and /metrics; None: there is none.
    monitoring_port: int | None = None


class _Bounds(TypedDict):
    """The limits on connections, as arguments of ``RpcServer``."""

    max_connections: int
    max_connections_per_peer: int
    rate: RateLimit
    exempt: Callable[[str], bool]
    budgets: Budgets


class DirectoryServer:
    """A directory server that serves during ``async with``; it ends calls, writer, then store."""

    ready: Ready

    def __init__(
        self,
        config: Config,
        grace_s: float = GRACE_S,
        *,
        restored: bool = False,
        config_file: Path | None = None,
    ) -> None:
        """``restored``: the store is from a backup, so it may be behind the other servers.

        ``config_file`` is named in the ways back of a server that has lost its store.
        """
        self.config = config
        self._config_file = config_file
        self._restored = restored
        self._grace_s = grace_s
        self._budgets = Budgets(
            handle_budget(config.rpc.max_handles),
            lookup_budget(config.rpc.max_lookups),
            memory_budget(config.rpc.memory_mb * 1024 * 1024),
        )
        self._stack = AsyncExitStack()
        self._accounts = LiveAccounts(Path(config.security.accounts))
        self._directory: DirectoryContext | None = None
        self._authenticator: AuditedAuthenticator | None = None
        self._rpc: RpcServer | None = None
        self._replication: ReplicationService | None = None
        self._monitoring: MonitoringService | None = None
        #: The store of a pass-through server.
        self._active_directory: ActiveDirectoryStore | None = None
        #: The addresses of queue managers, of a server that does not replicate.
        self._resolver: HostResolver | None = None
        self._started = False

    async def start(self) -> None:
        """Starts the server, unless it has started; ``async with`` calls this."""
        if self._started:
            return
        try:
            self.ready = await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        self._started = True

    async def __aenter__(self) -> DirectoryServer:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._stack.aclose()

    def reread(self, new: Config) -> Reread:
        """Applies the live keys of ``new``; after a ``ConfigError`` nothing has changed."""
        result = reread(self.config, new)
        seeds_of(result.config)  # raises for a text that is no seed
        self._use_accounts(result.config.security)
        self.config = result.config
        directory = self._directory
        if directory is not None:
            old = directory.settings
            directory.reconfigure(_settings(result.config, old.own_site, old.port))
        if self._replication is not None:
            self._replication.reread(result.config)
        if self._monitoring is not None:
            self._monitoring.reread(result.config.monitoring)
        if self._resolver is not None:
            self._resolver.use(result.config.hosts.entries)
        if self._authenticator is not None:
            self._authenticator.lifetime_s = result.config.security.logon_lifetime_s
        if self._rpc is not None:
            self._rpc.judge_logons()
        return result

    def _use_accounts(self, security: SecuritySection) -> None:
        self._accounts.use(Path(security.accounts), tickets=bool(security.keytab))

    async def _watch_accounts(self, rpc: RpcServer) -> None:
        """Notices changes of the accounts also while nobody logs on."""
        judged = self._accounts.edition
        while True:
            await asyncio.sleep(ACCOUNTS_S)
            self._accounts.look()
            if self._accounts.edition != judged:
                judged = self._accounts.edition
                rpc.judge_logons()

    async def _start(self) -> Ready:
        config = self.config
        self._use_accounts(config.security)
        remember(config.store.remembered)
        store = await self._open_store()
        replicates = config.server.role is not ConfiguredRole.NONE
        if not replicates:  # nothing that is missing will arrive
            await asyncio.to_thread(find_place, config, store)
        writer = GroupCommitWriter(store)
        sources = Sources(
            config, config.server.name or _host_name(), store, writer, config_file=self._config_file
        )
        self._monitoring = await self._monitor(sources) if config.monitoring.enabled else None
        if replicates:
            self._replication = await self._replicate(sources)
        else:
            self._stack.push_async_callback(self._drained, writer)
        place = await asyncio.to_thread(find_place, config, store)
        if self._active_directory is not None:
            for defect in await asyncio.to_thread(self._active_directory.schema_defects):
                log.error("%s", defect)
        if config.security.min_level.number < AuthLevel.INTEGRITY:
            level = config.security.min_level.value
            log.warning(
                "security.min_level is %s, below integrity: relayed logons are accepted", level
            )
        acting = await self._act_as_callers()
        authenticator = self._authenticator = AuditedAuthenticator(
            PyspnegoAuthenticator(
                self._accounts,
                place.server,
                config.security.domain,
                names=config.security.names,
                keytab=config.security.keytab or None,
                service=None if acting is None else acting.service,
            ),
            _logon_limits(config),
            min_level=config.security.min_level.number,
            lifetime_s=config.security.logon_lifetime_s,
        )
        directory = DirectoryContext(
            store,
            writer,
            SystemEntropy(),
            _settings(config, place.site.id, 0),
            gss=authenticator if config.security.gss is Gss.NEGOTIATE else None,
            node=None if self._replication is None else self._replication.driver,
            budgets=self._budgets,
            readers=self._readers(store),
            callers=None if acting is None else acting.connections,
        )
        notifier = sources.notifier = await self._start_notifier(store, place.server)
        if notifier is not None:
            directory.local, directory.notify = notifier.local, notifier.notify
        self._directory = sources.directory = directory
        sources.authenticator = authenticator
        rpc = self._rpc = sources.rpc = self._rpc_server(directory, authenticator)
        port = await self._listen(rpc, config.rpc.port, "port")
        directory.listens_on(port)
        watching = asyncio.create_task(self._watch_accounts(rpc))
        self._stack.callback(watching.cancel)
        mapper_port = await self._start_mapper(sources, port) if config.rpc.mapper else None
        discovery = None
        if config.discovery.enabled:
            discovery = await self._start_discovery(sources, place)
        replication = self._replication
        sources.serving = True
        return Ready(
            place.enterprise,
            place.server,
            place.site.path or str(place.site.id),
            config.rpc.listen,
            port,
            mapper_port,
            discovery,
            config.server.role.value,
            None if replication is None else replication.port,
            () if replication is None else tuple(await replication.owned()),
            None if self._monitoring is None else self._monitoring.port,
        )

    def _readers(self, store: Store) -> StoreReaders | None:
        """Threads for a store that waits for a network; the event loop reads the others."""
        remote = isinstance(store, DatabaseStore) and store.is_remote
        if self._active_directory is None and not remote:
            return None
        readers = StoreReaders(store, SESSIONS if remote else THREADS)
        self._stack.callback(readers.close)
        return readers

    async def _act_as_callers(self) -> ActingAsCallers | None:
        """Prepares a server that acts with its callers' tickets; None for every other one."""
        if self._active_directory is None:
            return None
        from mqis.server.pass_through import act_as_callers  # noqa: PLC0415 -- slow

        return await act_as_callers(self.config, self._active_directory, self._stack)

    async def _open_store(self) -> Store:
        """Claims and opens the store in a thread, because a database may answer late or hang."""
        section = self.config.store
        if directory_urls(section.url):
            from mqis.server.pass_through import open_directory  # noqa: PLC0415 -- slow

            self._active_directory = open_directory(self.config)
            self._stack.callback(self._active_directory.close)
            return self._active_directory
        if section.acting_as is ActingAs.CALLER:
            raise ConfigError(
                "store.acting_as: callers have rights of their own in an Active Directory only"
            )
        claim = claimed_store(section.url, timeout_s=section.timeout_s)
        opening = asyncio.ensure_future(asyncio.to_thread(self._stack.enter_context, claim))
        try:
            store = await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait({opening})  # so that what it opened is closed
            raise
        except MissingStore as error:
            role, name = self.config.server.role, server_name(self.config)
            ways = ways_back(role, name, self._config_file)
            raise ConfigError(f"{error.detail}; {ways}") from error
        if isinstance(store, DatabaseStore):
            store.cache_at_most(section.remembered)
            store.condition.report = log.error
            await asyncio.to_thread(store.examine)
        return store

    async def _monitor(self, sources: Sources) -> MonitoringService:
        section = self.config.monitoring
        try:
            return await start_monitoring(section, sources, self._stack)
        except OSError as error:
            raise ConfigError(_why_no_monitoring(error, section.listen, section.port)) from error

    async def _replicate(self, sources: Sources) -> ReplicationService:
        """Starts replication; a new server waits here until it has a directory."""
        with sources.store.read() as view:
            origin = mark_of(view)
        if origin is not None:
            log.warning("this store was restored, asking the other servers first: %s", origin)
        service = await start_replication(
            self.config,
            sources.store,
            sources.writer,
            self._stack,
            partial(self._drained, sources.writer),
            restored=self._restored or origin is not None,
        )
        sources.replication = service
        if origin is not None:
            forgetting = asyncio.create_task(forget_when_recovered(service.driver))
            self._stack.callback(forgetting.cancel)
        await service.bootstrapped()
        publishing = asyncio.create_task(service.publish())
        self._stack.callback(publishing.cancel)
        return service

    async def _start_notifier(self, store: Store, name: str) -> ChangeNotifier | None:
        """The notifier of the queue manager that replicates, or one of its own."""
        if self._replication is not None:
            return self._replication.notifier
        resolver = self._resolver = HostResolver(
            store, self.config.hosts.entries, self.config.replication.port
        )
        return await start_notifier(self.config, store, name, resolver, self._stack)

    async def _start_discovery(self, sources: Sources, place: ServerPosition) -> int:
        section = self.config.discovery
        try:
            responder, port = await start_discovery(
                section, sources.store, place.server, place.site.id
            )
        except OSError as error:
            raise ConfigError(_why_no_discovery(error, section.listen, section.port)) from error
        self._stack.push_async_callback(responder.close)
        sources.discovery = responder.server
        return port

    def _undelete(self, directory: DirectoryContext) -> Reply:
        """Undelete, which reads the journal of this server; loaded with the first call."""

        @cache
        def service() -> Undeletion:
            from mqis.server.undeletion.deleted_history import JournalHistory  # noqa: PLC0415
            from mqis.server.undeletion.undelete_service import Undeletion  # noqa: PLC0415

            replication = self._replication
            history = me = None
            if replication is not None and replication.journal is not None:
                me, files = replication.me, replication.journal.files
                history = JournalHistory(files.directory, directory.store, me.site)
            return Undeletion(directory, history, me)

        async def close() -> None:
            if service.cache_info().currsize:
                await service().close()

        self._stack.push_async_callback(close)
        return lambda call, request: service().reply(call, request)

    def _rpc_server(
        self, directory: DirectoryContext, authenticator: AuditedAuthenticator
    ) -> RpcServer:
        sessions = SessionList(directory, lambda: server)
        server = RpcServer(
            [
                DscommService(directory),
                Dscomm2Service(directory),
                ManagementService(lambda: server.endpoint),
                AdministrationService(self._undelete(directory), sessions),
            ],
            SystemEntropy(),
            authenticator=authenticator,
            limits=RpcLimits(max_failed_logons=self.config.security.logon_failures_per_connection),
            min_level=self.config.security.min_level.number,
            **self._bounds(),
        )
        return server

    async def _start_mapper(self, sources: Sources, port: int) -> int:
        """Starts the endpoint mapper, with both interfaces registered; returns its port."""
        registry = EndpointRegistry()
        for syntax, annotation in _ANNOTATIONS.items():
            address = self.config.rpc.listen
            # A tower holds IPv4 addresses only; clients use the host that they asked.
            registry.insert(
                Registration(syntax, port, "0.0.0.0" if ":" in address else address, annotation)
            )
        mapper = sources.mapper = RpcServer(
            [EndpointMapperService(registry), ManagementService(lambda: mapper.endpoint)],
            SystemEntropy(),
            **self._bounds(),
        )
        return await self._listen(mapper, self.config.rpc.mapper_port, "mapper_port")

    def _bounds(self) -> _Bounds:
        section = self.config.rpc
        return _Bounds(
            max_connections=section.max_connections,
            max_connections_per_peer=section.max_connections_per_address,
            rate=RateLimit(section.connection_rate, section.connection_burst),
            exempt=is_loopback,
            budgets=self._budgets,
        )

    async def _listen(self, server: RpcServer, port: int, key: str) -> int:
        address = self.config.rpc.listen
        try:
            bound = await server.listen(address, port)
        except OSError as error:
            raise ConfigError(_bind_failure(error, address, port, key)) from error
        self._stack.push_async_callback(server.close, self._grace_s)
        return bound

    @staticmethod
    async def _drained(writer: GroupCommitWriter) -> None:
        await writer.close()
        log.info("store closed", extra=details(changes=writer.operations, commits=writer.commits))


def _settings(config: Config, own_site: Guid | None, port: int) -> DirectorySettings:
    security = config.security
    return DirectorySettings(
        administrators=frozenset(security.administrators),
        machine_policy=security.machine_policy,
        unicode_names=config.server.unicode_names,
        allowance=Allowance(
            security.max_owned,
            security.max_certificates,
            security.max_certificate_bytes,
            security.max_changes_per_hour,
            security.max_written_mb_per_hour << 20,
        ),
        own_site=own_site,
        challenge_machines=security.challenge_machines,
        port=port,
        anonymous_in_everyone=security.anonymous,
        global_catalogs=_catalogs(config.server.global_catalogs),
    )


def _catalogs(entries: Iterable[str]) -> dict[str, tuple[ServerSpec, ...]]:
    """The global catalogs by domain; each entry is ``DOMAIN SERVER ...``."""
    words = (entry.split() for entry in entries)
    return {domain: tuple(map(ServerSpec, servers)) for domain, *servers in words}


def _logon_limits(config: Config) -> LogonLimits:
    security = config.security
    return LogonLimits(
        security.logon_failures, security.logon_failures_per_address, security.logon_wait_s
    )


def _bind_failure(error: OSError, address: str, port: int, key: str) -> str:
    option = "--" + key.replace("_", "-")
    at = host_port(address, port)
    hints = {
        errno.EADDRINUSE: f"another process uses this port: stop it, or choose another port with "
        f"rpc.{key} or {option} (0: a free one)",
        errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE: give the server one of "
        f"them, or choose another port with rpc.{key} or {option}",
        errno.EADDRNOTAVAIL: "this computer does not have that address: choose another with "
        "rpc.listen or --listen",
    }
    if key == "mapper_port":
        hints[errno.EADDRINUSE] += ", or do without an endpoint mapper: rpc.mapper = false"
    # asyncio of Python 3.13 raises this error, and only this one, without its number.
    number = error.errno or errno.EADDRNOTAVAIL
    hint = hints.get(number, f"see rpc.{key} and rpc.listen")
    reason = os.strerror(number)
    return f"cannot listen at {at}: {reason}; {hint}"


def _why_no_discovery(error: OSError, address: str, port: int) -> str:
    reason = system_reason(error)
    return (
        f"cannot listen for discovery at UDP {host_port(address, port)}: {reason}; choose another "
        "with discovery.listen and discovery.port, or set discovery.enabled = false"
    )


def _why_no_monitoring(error: OSError, address: str, port: int) -> str:
    reason = os.strerror(error.errno or errno.EADDRNOTAVAIL)
    return (
        f"cannot listen for monitoring at {host_port(address, port)}: {reason}; choose another "
        "with monitoring.listen and monitoring.port (0: a free one), or set "
        "monitoring.enabled = false"
    )


def _host_name() -> str:
    return socket.gethostname().partition(".")[0]


# --- the server's place in the directory ----------------------------------------------------------


def find_place(config: Config, store: Store) -> ServerPosition:
    """Finds the enterprise and the own site, without which nothing can be served (1.5)."""
    with store.read() as view:
        root = enterprise(view)
        if root is None or not view.count(ObjectType.SITE):
            lacking = "enterprise" if root is None else "site"
            where = file_of(config.store.url) or without_passwords(config.store.url)
            raise ConfigError(
                f"{where}: this store holds no {lacking}, so there is no directory to serve; "
                "'mqis import FILE' imports one, 'mqis tour' makes an example"
            )
        name = root.path or ""
        if config.enterprise.name and config.enterprise.name.lower() != name.lower():
            raise ConfigError(
                f"enterprise.name: it is {config.enterprise.name!r}, but the store holds the "
                f"directory of {name!r}"
            )
        return ServerPosition(name, config.server.name or _host_name(), _own_site(config, view))


def _own_site(config: Config, view: View) -> DirectoryObject:
    """The site that the configuration names, or the site of its machine."""
    wanted, name = config.server.site, config.server.name
    machine = view.find(ObjectType.MACHINE, name) if name else None
    ids = () if machine is None else sites_of(machine)
    own = [site for site in (view.get(ObjectType.SITE, id_) for id_ in ids) if site is not None]
    known = ", ".join(sorted(site.path or "" for site in view.objects(ObjectType.SITE)))
    if not wanted:
        if own:
            return own[0]
        reason = f"not set, and the directory has no machine {name!r}" if name else "not set"
        raise ConfigError(
            f"server.site: {reason}; name the site of this server here or with --site: {known}"
        )
    site = view.find(ObjectType.SITE, wanted)
    if site is None:
        raise ConfigError(f"server.site: the directory has no site {wanted!r}; it has: {known}")
    if own and site.id not in {s.id for s in own}:
        stands = ", ".join(s.path or "" for s in own)
        raise ConfigError(f"server.site: it is {wanted!r}, but {name} belongs to {stands}")
    return site
