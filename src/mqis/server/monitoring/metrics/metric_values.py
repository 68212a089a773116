"""The values of all metrics, read from the running server."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509

from mqis import __version__
from mqis.config.sections import Config
from mqis.findings import Gravity
from mqis.protocol.ports import View
from mqis.protocol.rpc.faults import status_name
from mqis.runtime.histogram import Served
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.server.monitoring.health import own_verdict
from mqis.server.monitoring.metrics import all_metrics as c
from mqis.server.monitoring.metrics.replicating import journal, replication, transport
from mqis.server.monitoring.resources import disk_free
from mqis.server.monitoring.status import ServerStatus
from mqis.server.monitoring.status_sources import Sources
from mqis.server.monitoring.verdict import FindingKind, HealthVerdict
from mqis.wire.hresult import HResult

Family = tuple[c.Metric, c.Samples]


def families(sources: Sources, view: View, status: ServerStatus) -> Iterator[Family]:
    """Yields every metric of this server once, with its values."""
    yield c.BUILD, [((__version__, platform.python_version()), 1)]
    yield c.SERVER, [((status.server, status.role, status.site, status.enterprise), 1)]
    yield c.SERVING, c.alone(sources.serving)
    yield c.VERDICT, _verdict(own_verdict(sources, status))
    yield from _files(sources.config)
    yield from _rpc(sources)
    yield from _store(sources)
    service = sources.replication
    if service is not None:
        if service.key is not None:
            yield c.KEY_MADE, c.alone(service.key.ring.made)
        yield from replication(sources, view, status)
        yield from transport(sources, status)
        yield from ((m, c.alone(m.read(service))) for m in c.METRICS if m.read is not None)
        yield from journal(sources, view)
    yield from _notifications(sources)
    yield from _discovery(sources)
    if sources.monitoring is not None:
        yield c.UNANSWERED, c.alone(sources.monitoring.unanswered)


def _verdict(verdict: HealthVerdict) -> c.Samples:
    """The number of findings of each grade and kind, zeros too."""
    found = [(finding.gravity, finding.check) for finding in verdict.findings]
    return [
        ((grade.colour, kind.value), found.count((grade, kind.value)))
        for grade in (Gravity.ERROR, Gravity.WARNING)
        for kind in FindingKind
    ]


# --- RPC ------------------------------------------------------------------------------------------


def _rpc(sources: Sources) -> Iterator[Family]:
    found = {"directory": sources.rpc, "mapper": sources.mapper}
    servers = {name: server for name, server in found.items() if server is not None}
    yield c.CALLS, [row for name, s in servers.items() for row in _calls(name, s)]
    yield c.CALL_DURATION, [row for name, s in servers.items() for row in _durations(name, s)]
    yield c.CALL_FAILURES, [row for name, s in servers.items() for row in _failures(name, s)]
    yield c.FAULTS, [row for name, s in servers.items() for row in _faults(name, s)]
    yield c.CONNECTIONS, [((name,), server.connections) for name, server in servers.items()]
    yield (
        c.CONNECTIONS_ACCEPTED,
        [((name,), server.accepted) for name, server in servers.items()],
    )
    counted = {name: server.endpoint.statistics for name, server in servers.items()}
    yield c.CONNECTIONS_REFUSED, [((name,), s.refused) for name, s in counted.items()]
    yield c.CONNECTIONS_EVICTED, [((name,), s.evicted) for name, s in counted.items()]
    yield c.CALLBACKS, [((name,), s.calls_out) for name, s in counted.items()]
    if sources.authenticator is not None:
        yield c.LOGONS, c.alone(sources.authenticator.attempts)
        yield c.LOGON_FAILURES, c.alone(sources.authenticator.failures)
        yield c.LOGONS_UNJUDGED, c.alone(sources.authenticator.unjudged)
    if sources.directory is not None:
        yield c.DENIALS, c.alone(sources.directory.denials)
        budgets = sources.directory.budgets
        refused = (("changes",), budgets.changes.refusals), (("bytes",), budgets.written.refusals)
        yield c.OVER_BUDGET, list(refused)


def _calls(endpoint: str, server: RpcServer) -> c.Samples:
    return [
        ((endpoint, *_method_labels(served, opnum)), counted.calls)
        for served in server.statistics()
        for opnum, counted in enumerate(served.operations)
        if counted.calls
    ]


def _durations(endpoint: str, server: RpcServer) -> c.Samples:
    return [
        ((endpoint, *_method_labels(served, opnum)), counted.seconds)
        for served in server.statistics()
        for opnum, counted in enumerate(served.operations)
        if counted.seconds.count
    ]


def _failures(endpoint: str, server: RpcServer) -> c.Samples:
    return [
        ((endpoint, *_method_labels(served, opnum), _result(result)), times)
        for served in server.statistics()
        for opnum, failures in served.failures().items()
        for result, times in failures.items()
    ]


def _method_labels(served: Served, opnum: int) -> tuple[str, str]:
    return served.service.interface.name, served.name_of(opnum)


def _result(result: int) -> str:
    return HResult(result).name if result else "other"


def _faults(endpoint: str, server: RpcServer) -> c.Samples:
    statuses = list(server.endpoint.statistics.fault_statuses.items())
    return [
        ((endpoint, status_name(status) if status else "other"), times)
        for status, times in statuses
    ]


# --- the store, discovery -------------------------------------------------------------------------


def _store(sources: Sources) -> Iterator[Family]:
    writer = sources.writer
    yield c.COMMITS, c.alone(writer.commits)
    yield c.COMMIT_FAILURES, c.alone(writer.failures)
    yield c.OPERATIONS, c.alone(writer.operations)
    yield c.WAITING_OPERATIONS, c.alone(writer.waiting)
    yield c.COMMIT_OPERATIONS, [((), writer.batch_sizes)]
    yield c.FLUSH_DURATION, [((), writer.flush_seconds)]


def _notifications(sources: Sources) -> Iterator[Family]:
    if sources.notifier is not None:
        notices = sources.notifier.statistics
        names = ("sent", "delivered", "failed")
        yield c.NOTIFICATIONS, [((name,), getattr(notices, name)) for name in names]


def _discovery(sources: Sources) -> Iterator[Family]:
    if sources.discovery is None:
        return
    counted = sources.discovery.statistics
    names = ("answered", "limited", "malformed", "foreign_enterprise", "unprepared")
    yield c.DISCOVERY, [((name,), getattr(counted, name)) for name in names]


def _files(config: Config) -> Iterator[Family]:
    """Yields free space and the expiry of certificates; what cannot be read has no sample."""
    yield c.DISK_FREE, [((place,), free) for place, free in disk_free(config).items()]
    yield c.CERTIFICATE_EXPIRY, _expiry(config.store.ca_file)


def _expiry(path: str) -> c.Samples:
    if not path:
        return []
    try:
        certificates = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    first = min(each.not_valid_after_utc for each in certificates)
    return [(("store.ca_file",), first.timestamp())]
