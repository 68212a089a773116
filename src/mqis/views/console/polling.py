"""How every server is: what it answers itself, else what its store says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import View
from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.views.console.places import Place
from mqis.views.console.reading import OpenStores
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber

_TIMEOUT_S = 1.5
#: A status of a large enterprise has some hundred bytes for each partition and neighbour.
_MOST = 8 << 20
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Polled:
    """One server at one moment."""

    place: Place
    status: ServerStatus | None
    #: It answered by itself; False: the status is what its store says.
    alive: bool
    #: Why it did not answer.
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def role(self) -> str:
        return self.place.role or (self.status.role if self.status else "")

    @property
    def site(self) -> str:
        return self.place.site or (self.status.site if self.status else "")


def poll(places: Sequence[Place], stores: OpenStores) -> list[Polled]:
    """All at once; none of them can hold up the others for longer than the time-out."""
    if not places:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as threads:
        return list(threads.map(lambda place: _poll(place, stores), places))


def _poll(place: Place, stores: OpenStores) -> Polled:
    problem = None
    if place.monitor is not None:
        try:
            return Polled(place, _ask(place.monitor), True)
        except (OSError, HTTPException) as error:
            problem = f"does not answer at {place.monitor}: {_reason(error)}"
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            problem = f"does not answer at {place.monitor} as a server does"
    if place.store is None:
        return Polled(place, None, False, problem)
    try:
        with stores.view(place.store) as view:
            return Polled(place, _stored(place, view), False, problem)
    except MqisError as error:
        return Polled(place, None, False, problem or str(error))


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _ask(url: str) -> ServerStatus:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"{url!r} is no address of a monitor")
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/status", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise HTTPException(f"status {answer.status}")
        return _checked(ServerStatus.from_json(json.loads(answer.read(_MOST))))
    finally:
        connection.close()


def _checked(status: ServerStatus) -> ServerStatus:
    """What pages compute with is what it should be; ValueError or TypeError if not."""
    for partition in status.partitions:
        SequenceNumber.parse(partition.last_seq)
        SequenceNumber.parse(partition.purged_seq)
    for value in status.counters.values():
        float(value)
    return status


def _stored(place: Place, view: View) -> ServerStatus:
    root = enterprise(view)
    sites = {site.id: site.path or str(site.id) for site in view.objects(ObjectType.SITE)}
    partitions = tuple(
        PartitionStatus(
            str(partition.id),
            "enterprise"
            if partition.id == ENTERPRISE_PARTITION
            else sites.get(partition.id, str(partition.id)),
            partition.owner,
            partition.owner.lower() == place.name.lower(),
            str(partition.last_seq),
            str(partition.purged_seq),
            str(partition.allowed_purge_seq),
            partition.purge_state.name.lower(),
            0,
        )
        for partition in view.partitions()
    )
    name = root.path or "" if root is not None else ""
    return ServerStatus(place.name, place.role, place.site, name, 0, 0.0, partitions, (), {})
