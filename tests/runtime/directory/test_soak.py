"""The judge of ``tools/directory_soak.py``: it finds what a server lost or made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import StorageError
from mqis.runtime.entropy import SystemEntropy
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tools import directory_soak
from tools.directory_soak import Kept, Report, Soaker, examine

SEED = 4


def _soaker(queues: dict[str, Kept]) -> Soaker:
    soaker = Soaker(0, None, SEED, Report())  # type: ignore[arg-type]
    soaker.queues = queues
    return soaker


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One machine, and three queues: as they should be, half-written, and nobody's."""
    path = tmp_path / "soak.db"
    opened = SqliteStore(path)
    with opened.write() as tx:
        site = DirectoryEvents(tx, 0, SystemEntropy()).create(ObjectType.SITE, "Alpha", {})
        stored = DirectoryEvents(tx, 0, SystemEntropy(), own_site=site.id)
        stored.create(ObjectType.MACHINE, directory_soak.MACHINE, {})
        for name, label, other in (("a", "1", "1"), ("b", "2", "3"), ("c", "4", "4")):
            properties = dict(directory_soak._properties(label))
            properties[PropId.Q_QUOTA] = directory_soak._properties(other)[PropId.Q_QUOTA]
            stored.create(ObjectType.QUEUE, f"{directory_soak.PREFIX}{name}", properties)
    opened.close()
    return path


def test_the_soak_finds_what_is_wrong(store: Path) -> None:
    """Lost, half-written, come back, and out of nowhere."""
    prefix = directory_soak.PREFIX
    right = {f"{prefix}a": Kept("1"), f"{prefix}c": Kept("4")}
    half = examine(store, [_soaker({**right, f"{prefix}b": Kept("2")})])
    assert [fault.partition(":")[0] for fault in half] == [f"{prefix}b is half-written"]
    unknown = examine(store, [_soaker(right)])
    assert unknown == [f"{prefix}b exists, but no client made it"]
    for kept, possible in ((Kept("5"), "5"), (Kept(None), None), (Kept("6", ("7",)), "6")):
        fault = examine(store, [_soaker({**right, f"{prefix}a": kept})])[0]
        assert fault.startswith(f"{prefix}a has label '1', possible are")
        assert repr(possible) in fault
    lost = examine(store, [_soaker({**right, f"{prefix}d": Kept("8")})])
    assert f"{prefix}d has label None, possible are {{'8'}}" in lost
    pending = {**right, f"{prefix}a": Kept("0", ("1",)), f"{prefix}d": Kept(None, ("8",))}
    assert examine(store, [_soaker(pending)]) == unknown


def test_a_store_that_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "soak.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StorageError):
        examine(tmp_path / "soak.db", [])
