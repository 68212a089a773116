"""GetDirectoryData: which reads it makes, and what it makes of their results."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.routing.directorydata import ViewReads, get_directory_data
from mqis.protocol.routing.nexthops import get_queue_manager, get_routing_servers
from mqis.protocol.routing.snapshot import Snapshot, read_snapshot
from mqis.storage.memory_store import MemoryStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from tests import builders
from tests.builders import guid

AWAY = DirectoryError(HResult.MQ_ERROR_NO_DS, "the directory is away")
BROKEN = StorageError("the disk is away")


class Script:
    """A directory that answers as it is told, and notes what it is asked."""

    def __init__(
        self, *answers: DirectoryObject | Exception, begin: Exception | None = None
    ) -> None:
        self._answers = list(answers)
        self._begin = begin
        self.asked: list[object] = []

    def begin(self, object_type: ObjectType) -> str:
        self.asked.append(("begin", object_type))
        if self._begin is not None:
            raise self._begin
        return "handle"

    def next(self, handle: str) -> DirectoryObject | None:
        self.asked.append(("next", handle))
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self, handle: str) -> None:
        self.asked.append(("end", handle))


BEGIN, NEXT, END = ("begin", ObjectType.SITE), ("next", "handle"), ("end", "handle")


@pytest.mark.req("MQBR-3.1.5.9-02")
def test_begin_then_next_until_the_end_of_data_then_end() -> None:
    script = Script(builders.site(1), builders.site(2))
    data = get_directory_data(script, ObjectType.SITE)

    assert data.objects == (builders.site(1), builders.site(2))
    assert data.error is None
    assert script.asked == [BEGIN, NEXT, NEXT, NEXT, END]


@pytest.mark.req("MQBR-3.1.5.9-03")
@pytest.mark.parametrize("error", [AWAY, BROKEN])
def test_a_failed_begin_gives_nothing_and_is_not_ended(error: Exception) -> None:
    script = Script(begin=error)
    data = get_directory_data(script, ObjectType.SITE)

    assert data.objects is None
    assert data.error is error
    assert script.asked == [BEGIN]


@pytest.mark.req("MQBR-3.1.5.9-04")
@pytest.mark.parametrize("error", [AWAY, BROKEN])
def test_what_was_read_before_a_failed_next_is_discarded(error: Exception) -> None:
    script = Script(builders.site(1), error, builders.site(2))
    data = get_directory_data(script, ObjectType.SITE)

    assert data.objects is None
    assert data.error is error
    assert script.asked == [BEGIN, NEXT, NEXT, END]


@pytest.mark.req("MQBR-3.1.5.9-05")
def test_no_match_is_nothing_but_no_error() -> None:
    data = get_directory_data(Script(), ObjectType.SITE)

    assert data.objects is None
    assert data.error is None


def test_a_failed_end_changes_nothing() -> None:
    class Stubborn(Script):
        def end(self, handle: str) -> None:
            super().end(handle)
            raise AWAY

    script = Stubborn(builders.site(1))
    assert get_directory_data(script, ObjectType.SITE).objects == (builders.site(1),)
    assert script.asked[-1] == END


def directory(*objects: DirectoryObject) -> MemoryStore:
    store = MemoryStore()
    with store.write() as tx:
        for obj in objects:
            tx.insert(obj)
    return store


@pytest.mark.req("MQBR-3.1.5.4-01")
def test_a_queue_manager_is_found_by_its_identifier() -> None:
    """In the snapshot, which stands for the filtered read that the text names."""
    store = directory(builders.machine(1, "one"), builders.machine(2, "two"))
    with store.read() as view:
        snapshot = Snapshot.read(view)

    found = get_queue_manager(snapshot, guid(2))
    assert found is not None
    assert found.name == "two"
    assert get_queue_manager(snapshot, guid(3)) is None


@pytest.mark.req("MQBR-3.1.5.9-01")
def test_all_objects_of_the_type_that_meet_every_condition() -> None:
    """A type is read as a whole; conditions, of which there are two at most, choose from that."""
    here, there = guid(11), guid(12)
    machines = [
        builders.machine(1, "router", sites=(here,), service=1),
        builders.machine(2, "client", sites=(here,)),
        builders.machine(3, "elsewhere", sites=(there,), service=1),
        builders.machine(4, "both", sites=(there, here), service=1),
        builders.machine(5, "neighbour", sites=(here,)),
    ]
    store = directory(builders.site(11), builders.site(12), *machines)
    with store.read() as view:
        for kind, wanted in (
            (ObjectType.MACHINE, machines),
            (ObjectType.SITE, [builders.site(11), builders.site(12)]),
            (ObjectType.ROUTINGLINK, []),
        ):
            found = get_directory_data(ViewReads(view), kind).objects or ()
            assert sorted(found, key=lambda obj: obj.id) == wanted
        snapshot = Snapshot.read(view)
    assert get_routing_servers(snapshot, guid(2)) == (guid(1), guid(4))


@pytest.mark.req("MQBR-3.1.3.1-02")
def test_all_sites_and_all_links_are_read_without_a_filter() -> None:
    script = Script()
    read_snapshot(script)
    begun = [asked for asked in script.asked if isinstance(asked, tuple) and asked[0] == "begin"]

    assert ("begin", ObjectType.SITE) in begun
    assert ("begin", ObjectType.ROUTINGLINK) in begun


def test_a_snapshot_is_whole_or_an_error() -> None:
    with pytest.raises(DirectoryError, match="away"):
        read_snapshot(Script(builders.site(1), None, AWAY))  # type: ignore[arg-type]
