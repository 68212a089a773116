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
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import DirectoryObject, Partition, name_key
from mqis.protocol.hygiene.examining import HygieneReport, examine
from mqis.protocol.hygiene.knowledge import (
    Knowledge,
    KnowledgeLimit,
    PartitionCopy,
    absent_sites,
    knowledge_of,
)
from mqis.protocol.ports import View
from mqis.views.hygiene.copies import is_store, read_export
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
    """A file of an export, named after its server as the pipeline expects it too."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    def partitions(self) -> Sequence[Partition]:
        with read_export(self.path) as (header, _):
            return header.partitions

    def objects(self, *, queues: bool) -> Iterator[DirectoryObject]:
        with read_export(self.path) as (_, objects):
            yield from (obj for obj in objects if queues or obj.type is not ObjectType.QUEUE)


# --- the sources ----------------------------------------------------------------------------------


def check_sources(sources: Iterable[str]) -> HygieneReport:
    """Examines exports and stores together; raises an error if one of them cannot be read."""
    with ExitStack() as stack:
        return _examine(
            [
                _stored("", source, stack) if is_store(source) else _ExportCopy(Path(source))
                for source in sources
            ]
        )


def check_run(nodes: Nodes) -> HygieneReport:
    """Examines the stores of all servers of a run directory; says which cannot be read."""
    copies: list[_Copy] = []
    limits: list[KnowledgeLimit] = []
    with ExitStack() as stack:
        for node in nodes:
            try:
                copies.append(_stored(node.name, node.store, stack))
            except MqisError as error:
                limits.append(KnowledgeLimit("", f"{node.name} has no copy: {error}", _REPLACE))
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


def _examine(copies: Sequence[_Copy]) -> HygieneReport:
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
