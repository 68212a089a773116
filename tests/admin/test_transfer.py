"""Whole directories out and in: exact where it restores, all or nothing where it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from mqis.admin.transfer import export_file, export_store, import_file
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.export_format import ORDER, ExportError
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DeletedObject,
    DirectoryObject,
    Scope,
)
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.builders import queue

Edit = Callable[[list[dict[str, Any]]], object]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration enterprise: 95 objects of all types and a tombstone."""
    path = tmp_path_factory.mktemp("export") / "demo.jsonl"
    with closing(open_store("memory:")) as store:
        demo.build(store)
        assert export_file(store, path) == 96
    return path


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    url = "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/d.db"
    with closing(open_store(url, create=True)) as opened:
        yield opened


def exported(store: Store) -> bytes:
    out = BytesIO()
    export_store(store, out)
    return out.getvalue()


def edited(file: Path, target: Path, edit: Edit, *, recount: bool = True) -> Path:
    """Edits an export as people do: the digest, which would be wrong, goes."""
    lines = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()[:-1]]
    edit(lines)
    if recount:
        lines[0]["lines"] = len(lines) - 1
    target.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="ascii")
    return target


def line_of(file: Path, path: str) -> int:
    """The line number of an object, from 1."""
    lines = file.read_text(encoding="ascii").splitlines()
    return next(i for i, line in enumerate(lines, 1) if json.loads(line).get("path") == path)


def _beside(lines: list[dict[str, Any]], tombstone: dict[str, Any]) -> dict[str, Any]:
    """The first queue in the partition of a tombstone."""
    there = (line for line in lines[1:] if line["partition"] == tombstone["partition"])
    return next(line for line in there if line["type"] == "queue")


def is_empty(view: View) -> bool:
    return not view.partitions() and not any(view.count(kind) for kind in ORDER)


# --- restore --------------------------------------------------------------------------------------


def test_restoring_gives_the_same_bytes(file: Path, store: Store) -> None:
    result = import_file(store, file, restore=True)
    assert exported(store) == file.read_bytes()
    assert (sum(result.objects.values()), result.tombstones, result.skipped) == (95, 1, 0)
    assert store.check() == []


def test_restoring_an_empty_directory(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(exported(store))
    import_file(store, path, restore=True)
    assert exported(store) == path.read_bytes()


def test_a_restored_store_goes_on_where_it_was(file: Path, store: Store) -> None:
    import_file(store, file, restore=True)
    with store.write() as tx:
        before = tx.partition(ENTERPRISE_PARTITION)
        assert before is not None
        name = "Delft"
        events = DirectoryEvents(tx, demo.NOW, SystemEntropy())
        site = events.create_directory_object(ObjectType.SITE, props({PropId.S_PATHNAME: name}))
        assert site.seq == before.last_seq.increment()


def test_restoring_wants_an_empty_store(file: Path, store: Store) -> None:
    import_file(store, file, restore=True)
    before = exported(store)
    with pytest.raises(StorageError, match="the store is not empty"):
        import_file(store, file, restore=True)
    assert exported(store) == before


def test_one_object_without_a_partition_is_in_the_way_too(file: Path, store: Store) -> None:
    with store.write() as tx:
        tx.insert(queue(1))
    with pytest.raises(StorageError, match="the store is not empty"):
        import_file(store, file, restore=True)


# --- create ---------------------------------------------------------------------------------------


def test_creating_keeps_all_but_the_numbers(file: Path, store: Store) -> None:
    result = import_file(store, file)
    assert (sum(result.objects.values()), result.tombstones, result.skipped) == (95, 0, 1)
    assert store.check() == []
    with closing(open_store("memory:")) as original, original.read() as _:
        import_file(original, file, restore=True)
        with original.read() as theirs, store.read() as ours:
            for kind in ORDER:
                assert _facts(ours, kind) == _facts(theirs, kind), kind
            assert [(p.id, p.owner) for p in ours.partitions()] == [
                (p.id, p.owner) for p in theirs.partitions()
            ]


def _facts(view: View, kind: ObjectType) -> list[tuple[Guid, Guid, dict[int, PropVariant]]]:
    return [(obj.id, obj.partition, dict(obj.properties)) for obj in view.objects(kind)]


def test_numbers_are_new_and_without_gaps(file: Path, store: Store) -> None:
    import_file(store, file)
    with store.read() as view:
        for partition in view.partitions():
            numbers = [
                change.seq.value for change in view.changes(partition.id, partition.purged_seq)
            ]
            assert numbers == list(range(1, partition.last_seq.value + 1))


def test_a_part_can_be_added(file: Path, store: Store, tmp_path: Path) -> None:
    """A file with the queues alone goes into a store that has everything else."""
    queues = edited(
        file, tmp_path / "q.jsonl", lambda lines: _keep(lines, lambda line: line["type"] == "queue")
    )
    rest = edited(
        file, tmp_path / "r.jsonl", lambda lines: _keep(lines, lambda line: line["type"] != "queue")
    )
    import_file(store, rest)
    assert import_file(store, queues).objects == {ObjectType.QUEUE: 60}
    assert store.check() == []


def _keep(lines: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> None:
    lines[1:] = [line for line in lines[1:] if wanted(line)]


def test_the_same_enterprise_is_left_alone(file: Path, store: Store, tmp_path: Path) -> None:
    alone = edited(
        file, tmp_path / "e.jsonl", lambda x: _keep(x, lambda line: line["type"] == "enterprise")
    )
    import_file(store, alone)
    before = exported(store)
    assert import_file(store, alone).skipped == 1
    assert exported(store) == before


def test_another_enterprise_is_refused(file: Path, store: Store, tmp_path: Path) -> None:
    import_file(store, file)

    def other_name(lines: list[dict[str, Any]]) -> None:
        lines[0]["enterprise"] = "Other"
        del lines[1:]

    def other_id(lines: list[dict[str, Any]]) -> None:
        lines[1]["id"] = "00000000-0000-0000-0000-000000000001"
        del lines[2:]

    with pytest.raises(ExportError, match=r"line 1, enterprise: 'Other' is not 'Meridian'"):
        import_file(store, edited(file, tmp_path / "n.jsonl", other_name))
    with pytest.raises(ExportError, match=r"line 2, id: the store's enterprise 'Meridian' is "):
        import_file(store, edited(file, tmp_path / "i.jsonl", other_id))


def test_what_is_there_already_is_refused(file: Path, store: Store, tmp_path: Path) -> None:
    import_file(store, file)
    before = exported(store)
    with pytest.raises(ExportError, match=r"line 3: site 'Amsterdam' is in the directory already"):
        import_file(store, file)
    assert exported(store) == before


def test_a_created_object_has_no_tombstone_left(file: Path, store: Store, tmp_path: Path) -> None:
    import_file(store, file)
    with store.write() as tx:
        queue = tx.find(ObjectType.QUEUE, "ams-app1\\orders")
        assert queue is not None
        DirectoryEvents(tx, demo.NOW, SystemEntropy()).delete_directory_object(queue)
    again = edited(
        file,
        tmp_path / "again.jsonl",
        lambda lines: _keep(lines, lambda line: line.get("path") == "ams-app1\\orders"),
    )
    import_file(store, again)
    with store.read() as view:
        assert view.tombstones(queue.id) == []
        assert view.get(ObjectType.QUEUE, queue.id) is not None
    assert store.check() == []


def test_tombstones_of_another_partition_are_restored(store: Store, tmp_path: Path) -> None:
    """An authority may have announced deletions of objects that are not its own."""
    with closing(open_store("memory:")) as source:
        demo.build(source)
        with source.write() as tx:
            state = tx.partitions()[0]
            held = [
                change for p in tx.partitions()[1:] for change in tx.changes(p.id, state.purged_seq)
            ]
            last = state.last_seq
            for change in (held[0], next(c for c in held if isinstance(c, DeletedObject))):
                last = last.increment()
                tx.bury(
                    DeletedObject(change.id, state.id, last, ObjectType.QUEUE, Scope.ENTERPRISE)
                )
            tx.put_partition(replace(state, last_seq=last))
        export_file(source, tmp_path / "e.jsonl")
        assert import_file(store, tmp_path / "e.jsonl", restore=True).tombstones == 3
        assert exported(store) == exported(source)
    assert store.check() == []


# --- files that are wrong -------------------------------------------------------------------------


@pytest.mark.parametrize("restore", [False, True])
class TestWrongFiles:
    """Each one says where it is wrong and leaves an empty store empty."""

    @pytest.fixture(autouse=True)
    def _files(self, file: Path, tmp_path: Path, store: Store, restore: bool) -> None:
        self.file = file
        self.target = tmp_path / "wrong.jsonl"
        self.store = store
        self.restore = restore

    def refused(self, message: str) -> None:
        with pytest.raises(ExportError) as caught:
            import_file(self.store, self.target, restore=self.restore)
        assert str(caught.value).startswith(f"{self.target}: {message}"), caught.value
        with self.store.read() as view:
            assert is_empty(view)

    def test_a_broken_line(self) -> None:
        lines = self.file.read_text(encoding="ascii").splitlines()
        lines[49] = lines[49][:-7]
        self.target.write_text("\n".join(lines), encoding="ascii")
        self.refused("line 50, column ")

    def test_a_wrong_value(self) -> None:
        def edit(lines: list[dict[str, Any]]) -> None:
            lines[69]["props"]["108"]["value"] = 5

        edited(self.file, self.target, edit)
        self.refused("line 70, props.108.value: VT_LPWSTR: wants text, got 5")

    def test_a_wrong_variant_type(self) -> None:
        def edit(lines: list[dict[str, Any]]) -> None:
            lines[69]["props"]["108"] = {"vt": "VT_UI4", "value": 5}

        edited(self.file, self.target, edit)
        self.refused("line 70, props.108.vt: PROPID_Q_LABEL is VT_LPWSTR, not VT_UI4")

    def test_an_identifier_twice(self) -> None:
        def edit(lines: list[dict[str, Any]]) -> None:
            lines[69]["id"] = lines[68]["id"]

        edited(self.file, self.target, edit)
        self.refused("line 70")

    def test_a_name_twice(self) -> None:
        def edit(lines: list[dict[str, Any]]) -> None:
            name = lines[68]["path"].upper()
            lines[69]["path"] = lines[69]["props"]["103"]["value"] = name

        edited(self.file, self.target, edit)
        self.refused("line 70")

    def test_a_file_cut_off_in_a_line(self) -> None:
        self.target.write_bytes(self.file.read_bytes()[:-30])
        self.refused("line 98, column ")

    def test_a_file_cut_off_between_lines(self) -> None:
        content = self.file.read_bytes().splitlines(keepends=True)
        self.target.write_bytes(b"".join(content[:60]))
        self.refused("line 1, lines: announces 97 more lines, but 59 follow: the file was cut off")

    def test_a_line_too_many(self) -> None:
        self.target.write_bytes(self.file.read_bytes() + b"\n")
        self.refused("line 99: the line is empty")

    def test_an_empty_file(self) -> None:
        self.target.write_bytes(b"")
        self.refused("line 1: the file is empty")

    def test_another_format(self) -> None:
        self.target.write_text("Computer;Queue\n", encoding="ascii")
        self.refused("line 1, column 1: not JSON")

    def test_not_text(self) -> None:
        lines = self.file.read_bytes().splitlines(keepends=True)
        self.target.write_bytes(lines[0] + b"\xff\xfe\n")
        self.refused("line 2: this line is not UTF-8")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda lines: lines[69].update(seq="00000000000000ff"),
            r"line 70, seq: 00000000000000ff is not in 1 to ",
        ),
        (
            lambda lines: lines[69].update(seq="0000000000000000"),
            r"line 70, seq: 0000000000000000 is not in 1 to ",
        ),
        (
            lambda lines: lines[3].update(seq=lines[2]["seq"]),
            r"line 4, seq: number .* of partition .* is on line 3 already",
        ),
        (
            lambda lines: lines[69].update(partition=lines[69]["id"]),
            r"line 70, partition: .* is not a partition of line 1",
        ),
        (
            lambda lines: lines[-1].update(id=_beside(lines, lines[-1])["id"]),
            r"line 97, id: queue .* is on line \d+ already",
        ),
        (
            lambda lines: (
                lines.insert(1, lines.pop()) or _beside(lines, lines[1]).update(id=lines[1]["id"])
            ),
            r"line \d+, id: the tombstone of queue .* is on line 2 already",
        ),
    ],
)
def test_what_only_a_restore_refuses(
    file: Path, store: Store, tmp_path: Path, edit: Edit, message: str
) -> None:
    wrong = edited(file, tmp_path / "wrong.jsonl", edit)
    with pytest.raises(ExportError, match=message):
        import_file(store, wrong, restore=True)
    with store.read() as view:
        assert is_empty(view)


def test_a_queue_before_its_machine(file: Path, store: Store, tmp_path: Path) -> None:
    wrong = edited(
        file,
        tmp_path / "wrong.jsonl",
        lambda lines: _keep(lines, lambda line: line["type"] in ("enterprise", "site", "queue")),
    )
    with pytest.raises(ExportError, match=r"line 6: no machine .*MQ_ERROR_MACHINE_NOT_FOUND"):
        import_file(store, wrong)
    with store.read() as view:
        assert is_empty(view)


def test_a_file_that_is_not_there(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"absent: cannot be read: No such file"):
        import_file(store, tmp_path / "absent")


def test_a_hand_made_file(store: Store, tmp_path: Path) -> None:
    """The least that makes a site, without count and last line end."""
    path = tmp_path / "hand.jsonl"
    path.write_text(
        '{"format": "mqis-directory", "version": 1, "enterprise": null, "partitions": []}\n'
        '{"type": "site", "id": "00000000-0000-0000-0000-0000000000aa", "partition": '
        '"00000000-0000-0000-0000-000000000000", "seq": "0000000000000000", "path": "Zürich", '
        '"props": {"301": {"vt": "VT_LPWSTR", "value": "Zürich"}}}',
        encoding="utf-8",
    )
    import_file(store, path)
    with store.read() as view:
        site = view.find(ObjectType.SITE, "ZÜRICH")
        assert isinstance(site, DirectoryObject)
        assert site.value(PropId.S_INTERVAL1) == 2  # a default of new sites


# --- files on disk --------------------------------------------------------------------------------


def test_progress_reaches_the_end(file: Path, store: Store, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    import_file(store, file, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (file.stat().st_size, file.stat().st_size)
    export_file(store, tmp_path / "x", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (95, 95)


def test_a_failed_export_keeps_the_old_file(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text("old", encoding="ascii")

    def fail(_done: int, _total: int) -> None:
        raise StorageError("the disk is gone")

    with closing(open_store("memory:")) as source:
        import_file(source, file)
        with pytest.raises(StorageError, match="the disk is gone"):
            export_file(source, path, fail)
    assert path.read_text(encoding="ascii") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with (
        closing(open_store("memory:")) as source,
        pytest.raises(StorageError, match=r"absent/x: cannot be written: No such file"),
    ):
        export_file(source, tmp_path / "absent" / "x")
