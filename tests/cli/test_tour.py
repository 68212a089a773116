"""``mqis tour``: the short one ends well, can be repeated, and fails loudly.

The tour of the live enterprise takes minutes: ``make run ONCE=1`` runs it, and CI runs that.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqis.cli.query import rows_as_table
from mqis.cli.tour import file as tour_file
from mqis.config.errors import NodesError
from mqis.config.file import override
from mqis.config.processlocks import ProcessLock
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import StorageError
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.errors import MqisError
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.commands import process, run


def test_it_ends_well_and_leaves_a_store(tmp_path: Path) -> None:
    done = process("tour", "--store", "tour.db", directory=tmp_path, env={"COLUMNS": "100"})
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    for step in ("Build", "Sites", "Routing links", "Partitions", "Lookup", "One queue"):
        assert f". {step}  " in text
    assert "the second store exports the same bytes" in text
    assert ". Over the wire  " in text
    for line in (
        "an anonymous user cannot create a queue: MQ_ERROR_ACCESS_DENIED",
        "audit trail: denied: S-1-5-7 may not create queue ams-app1\\tour",
        "read back with a valid signature: label 'Made over the wire'",
        "found by a lookup of that label: 1 queue",
        "deleted, and gone: MQDS_OBJECT_NOT_FOUND",
    ):
        assert f"✓ {line}" in text
    assert "nothing is wrong" in text
    assert max(map(len, text.splitlines())) <= 100
    assert [path.name for path in tmp_path.iterdir()] == ["tour.db"]


def test_its_advice_works(tmp_path: Path) -> None:
    store = tmp_path / "a b.db"
    text = run("tour", "--store", store).stdout
    assert "mqis get machine ams-dir1 -s" in text
    assert run("get", "machine", "ams-dir1", "-s", store).exit_code == 0
    assert run("lookup", "machine", "-s", store, "--where", "site_id=Berlin").exit_code == 0
    result = run(
        *("lookup", "queue", "-s", store, "--where", "label=Audit trail"),
        *("--columns", "path,journal,seq"),
    )
    assert result.exit_code == 0
    assert run("get", "queue", "chi-app2\\orders", "-s", store, "--json").exit_code == 0


def test_it_builds_anew_over_an_earlier_tour(tmp_path: Path) -> None:
    store = tmp_path / "new" / "t.db"
    assert run("tour", "--store", store).exit_code == 0
    again = run("tour", "--store", store)
    assert again.exit_code == 0
    assert "holds the enterprise of an earlier tour; building it anew" in again.stdout


def test_it_leaves_another_directory_alone(tmp_path: Path) -> None:
    store = tmp_path / "mine.db"
    with closing(open_store(str(store), create=True)) as mine, mine.write() as tx:
        name = "Delft"
        events = DirectoryEvents(tx, 0, SystemEntropy())
        events.create_directory_object(ObjectType.SITE, props({PropId.S_PATHNAME: name}))
    error = run("tour", "--store", store).exception
    assert isinstance(error, StorageError)
    assert "holds another directory; name a new file with --store" in str(error)
    with closing(open_store(str(store))) as mine, mine.read() as view:
        assert view.find(ObjectType.SITE, "Delft") is not None


def test_it_leaves_another_file_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("notes " * 1000, encoding="ascii")
    assert isinstance(run("tour", "--store", notes).exception, StorageError)
    assert notes.read_text(encoding="ascii").startswith("notes ")


def test_a_step_that_does_not_hold_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tour_file._ROLES, "PSC", 3)
    result = run("tour", "--store", tmp_path / "t.db")
    assert isinstance(result.exception, MqisError)
    assert str(result.exception) == (
        "step 2, Sites: this does not hold: five directory servers: 1 PEC, 3 PSC, 2 BSC; "
        "saw {'BSC': 2, 'PEC': 1, 'PSC': 2}, expected {'PEC': 1, 'PSC': 3, 'BSC': 2}"
    )
    assert result.exit_code != 0
    assert "3. " not in result.stdout


def test_a_table_that_leaves_a_row_out_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick is about the table on the screen, not about the answer behind it."""
    monkeypatch.setattr(
        tour_file, "rows_as_table", lambda found, *more: rows_as_table(found[1:], *more)
    )
    result = run("tour", "--store", tmp_path / "t.db")
    assert isinstance(result.exception, MqisError)
    assert str(result.exception).startswith("step 6, Lookup: this does not hold: 6 queues")
    assert "expected [['chi-app2" in str(result.exception)


def test_links_at_other_costs_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tour_file.LINKS, frozenset({"Amsterdam", "Berlin"}), 11)
    result = run("tour", "--store", tmp_path / "t.db")
    assert isinstance(result.exception, MqisError)
    assert str(result.exception).startswith("step 3, Routing links: this does not hold")


def test_a_server_that_lets_everybody_in_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step over the wire looks at what the server does, not at what it should do."""
    everyone = ["S-1-5-7"]

    def lax(config: Config, values: dict[str, dict[str, object]], source: str) -> Config:
        values["security"]["administrators"] = everyone
        return override(config, values, source)

    monkeypatch.setattr("mqis.cli.tour.wire.override", lax)
    result = run("tour", "--store", tmp_path / "t.db")
    assert isinstance(result.exception, MqisError)
    assert "cannot create a queue: MQ_OK" in str(result.exception)


def test_the_live_one_leaves_what_is_no_tour_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    notes = tmp_path / "run" / "notes.txt"
    notes.write_text("mine", encoding="ascii")
    error = run("tour", "--once", "--directory", tmp_path).exception
    assert isinstance(error, NodesError)
    assert "is not the run directory of a tour; name another --directory" in str(error)
    assert notes.read_text(encoding="ascii") == "mine"


def test_the_live_one_does_not_take_the_place_of_one_that_runs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    lock = ProcessLock(tmp_path / "run" / "lock")
    assert lock.take()
    error = run("tour", "--once", "--directory", tmp_path).exception
    lock.let_go()
    assert isinstance(error, NodesError)
    assert "a tour is still running there" in str(error)
