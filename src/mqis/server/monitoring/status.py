"""The status of one server, as its monitoring endpoint answers ``GET /status``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The status of one partition; sequence numbers are sixteen hexadecimal digits."""

    id: str
    #: The site's name; "enterprise" for the enterprise partition.
    name: str
    owner: str
    authority: bool
    last_seq: str
    purged_seq: str
    allowed_purge_seq: str
    #: normal, start_sync0, sync0 and so on.
    state: str
    #: Changes that are known to be missing here.
    missing: int
    #: The server belongs to the site of this partition.
    own_site: bool = False
    #: The digest of what replicates (``protocol.replication.digest``), 64 hexadecimal digits, of
    #: this number; empty while the copy is not complete at it.
    digest: str = ""
    #: The same of the queues that only the site knows, and their number.
    site_digest: str = ""
    site_only: int = 0
    #: The ranges of numbers that the authority skipped: (last before, first after), ascending.
    jumps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NeighbourStatus:
    """Another server that this one replicates with."""

    name: str
    #: An open session, in either direction.
    connected: bool
    #: Messages that wait for it or for its acknowledgement.
    queued: int
    #: Partition id -> the last number that it acknowledged.
    acknowledged: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    server: str
    role: str
    site: str
    enterprise: str
    pid: int
    #: Seconds since the epoch.
    started: float
    partitions: tuple[PartitionStatus, ...]
    neighbours: tuple[NeighbourStatus, ...]
    #: Name -> number: sessions, connections, calls, faults, commits, sync and sync0 rounds, journal
    #: records and the like. Names may be added, never renamed.
    counters: Mapping[str, float]
    #: The problems that keep it from serving, as ``/health`` lists them.
    problems: tuple[str, ...] = ()
    #: False until clients are served.
    serving: bool = True
    #: The version of mqis; empty if an earlier one answers, or if the server does not run.
    version: str = ""
    #: Its resident memory; 0 if that is not known.
    memory_bytes: int = 0
    #: store, journal or archive -> the free bytes there.
    disk_free: Mapping[str, int] = field(default_factory=dict)
    #: Files that are gone and without which it cannot start again, each in words.
    lost_files: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ServerStatus:
        """Reads a status, also of a newer server: unknown keys are ignored."""
        return cls(
            **{
                **_known(cls, content),
                "partitions": tuple(_partition(p) for p in content["partitions"]),
                "neighbours": tuple(
                    NeighbourStatus(**_known(NeighbourStatus, n)) for n in content["neighbours"]
                ),
                "problems": tuple(str(problem) for problem in content.get("problems", ())),
                "lost_files": tuple(str(text) for text in content.get("lost_files", ())),
            }
        )


def _partition(content: Mapping[str, Any]) -> PartitionStatus:
    jumps = tuple((str(before), str(after)) for before, after in content.get("jumps", ()))
    return PartitionStatus(**(_known(PartitionStatus, content) | {"jumps": jumps}))


def _known(kind: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {key: value for key, value in content.items() if key in names}
