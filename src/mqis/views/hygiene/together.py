"""Hygiene of several copies together: of each partition the best copy, which is its authority's.

One server keeps one object of an identifier and of a name. Only the copies of all authorities show
that two of them have used the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mqis.config.nodes import Nodes
from mqis.config.stores import open_store
from mqis.findings import CheckReport, Limit
from mqis.protocol.directory.export_format import ORDER, ExportHeader
from mqis.protocol.directory.objects import DirectoryObject, Partition, name_key
from mqis.protocol.hygiene.examining import examine
from mqis.protocol.hygiene.knowledge import (
    Knowledge,
    PartitionCopy,
    absent_sites,
    knowledge_of,
)
from mqis.protocol.ports import View
from mqis.views.hygiene.copies import Doubts, is_store, read_export
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber

_OTHERS = tuple(kind for kind in ORDER if kind is not ObjectType.QUEUE)


class _Copy(Protocol):
    """A server's copy of the directory. ``name`` is the server's, if that is known."""

    @property
    def name(self) -> str: ...

    def partitions(self) -> Sequence[Partition]: ...

    def objects(self, *, queues: bool) -> Iterator[DirectoryObject]: ...


@dataclass(frozen=True, slots=True)
class _StoreCopy:
    name: str
    view: View

    def partitions(self) -> Sequence[Partition]:
        return self.view.partitions()

    def objects(self, *, queues: bool) -> Iterator[DirectoryObject]:
        for kind in ORDER if queues else _OTHERS:
            yield from self.view.objects(kind)


@dataclass(frozen=True, slots=True)
class _ExportCopy:
    """A file of an export; one that does not say whose it is, is named after its server."""

    path: Path
    header: ExportHeader
    doubts: Doubts

    @classmethod
    def of(cls, path: Path, doubts: Doubts) -> _ExportCopy:
        with read_export(path, doubts) as (header, _):
            return cls(path, header, doubts)

    @property
    def name(self) -> str:
        return self.path.stem if self.header.server is None else self.header.server.name

    def partitions(self) -> Sequence[Partition]:
        return self.header.partitions

    def objects(self, *, queues: bool) -> Iterator[DirectoryObject]:
        with read_export(self.path, self.doubts) as (_, objects):
            yield from (obj for obj in objects if queues or obj.type is not ObjectType.QUEUE)


# --- the sources ----------------------------------------------------------------------------------


def check_sources(sources: Iterable[str]) -> CheckReport:
    """Examines exports and stores together; raises an error if one of them cannot be read."""
    doubts = Doubts()
    copies: list[_Copy] = []
    with ExitStack() as stack:
        for source in sources:
            if is_store(source):
                copies.append(_stored("", source, stack))
            else:
                copies.append(_ExportCopy.of(Path(source), doubts))
        report = _examine(copies)
    exports = [copy for copy in copies if isinstance(copy, _ExportCopy)]
    return replace(report, limits=(*doubts, *_doubled(exports), *report.limits))


def _doubled(exports: Iterable[_ExportCopy]) -> Iterator[Limit]:
    """The exports of one server that were given as those of several."""
    files: dict[Guid, Path] = {}
    for copy in exports:
        server = copy.header.server
        if server is not None and files.setdefault(server.id, copy.path) != copy.path:
            reason = f"{copy.path} and {files[server.id]} are both exports of {server.name}"
            yield Limit("", reason, "check one export of each server")


def check_run(nodes: Nodes) -> CheckReport:
    """Examines the stores of all servers of a run directory; says which cannot be read."""
    copies: list[_Copy] = []
    limits: list[Limit] = []
    with ExitStack() as stack:
        for node in nodes:
            try:
                copies.append(_stored(node.name, node.store, stack))
            except MqisError as error:
                limits.append(Limit("", f"{node.name} has no copy: {error}", _REPLACE))
        report = _examine(copies)
    return replace(report, limits=(*limits, *report.limits))


_REPLACE = "if the server is lost, replace it: mqis promote"


def _stored(name: str, url: str, stack: ExitStack) -> _StoreCopy:
    store = stack.enter_context(closing(open_store(url)))
    return _StoreCopy(name, stack.enter_context(store.read()))


# --- the best copy of each partition --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    copy: _Copy
    part: PartitionCopy
    last_seq: SequenceNumber

    @property
    def rank(self) -> tuple[bool, bool, SequenceNumber, str]:
        """The order of the pipeline: whole copies, the authority's, the most recent."""
        return self.part.whole, self.part.own, self.last_seq, self.copy.name


def _examine(copies: Sequence[_Copy]) -> CheckReport:
    best: dict[Guid, _Candidate] = {}
    for copy in copies:
        for found in _candidates(copy):
            held = best.get(found.part.id)
            if held is None or found.rank > held.rank:
                best[found.part.id] = found
    filled = {id_ for id_, found in best.items() if found.last_seq > SequenceNumber.MIN}
    sites = (obj for obj in _chosen(best, queues=False) if obj.type is ObjectType.SITE)
    known = Knowledge(
        tuple(found.part for found in best.values()), absent_sites(list(sites), filled)
    )
    return examine(_chosen(best, queues=True), knowledge=known)


def _candidates(copy: _Copy) -> Iterator[_Candidate]:
    states = copy.partitions()
    numbers = {state.id: state.last_seq for state in states}
    for part in knowledge_of(states, copy.objects(queues=False)).partitions:
        named = bool(copy.name) and name_key(part.owner) == name_key(copy.name)
        yield _Candidate(copy, replace(part, own=part.own or named), numbers[part.id])


def _chosen(best: dict[Guid, _Candidate], *, queues: bool) -> Iterator[DirectoryObject]:
    """Yields the objects of each partition from its best copy."""
    wanted: dict[int, tuple[_Copy, set[Guid]]] = {}
    for id_, found in best.items():
        wanted.setdefault(id(found.copy), (found.copy, set()))[1].add(id_)
    for copy, partitions in wanted.values():
        for obj in copy.objects(queues=queues):
            if obj.partition in partitions:
                yield obj
