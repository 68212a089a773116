"""The journal of a started server: signed with its key, checked with what the directory has."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.file import load
from mqis.findings import Gravity
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.signer import MachineKey, read_public_key
from mqis.server.directory_server import DirectoryServer
from mqis.storage.journal.journal_files import segments
from mqis.storage.sqlite import SqliteStore
from mqis.views.doctor.examination import examine
from mqis.wire.errors import MqisError
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.keyinfo import key_pem
from tests.cli.commands import run
from tests.server.enterprises import Site, create


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server that ran and stopped."""

    async def serve(site: Site, queue: str) -> None:
        async with site.serving("pec1") as pec:
            await create(pec, queue, "x")

    site = Site(tmp_path_factory.mktemp("served"))
    made = site.found("pec1")
    site.write("pec1", server={"role": "pec", "site": "Delft"}, replication={"journal": "journal"})
    asyncio.run(serve(site, "pec1\\one"))
    return made


def check(home: Path, *options: str | Path) -> dict[str, object]:
    result = run("journal", "check", home / "journal", "--json", *options)
    content: dict[str, object] = json.loads(result.stdout)
    return content


def states(content: dict[str, object]) -> list[str]:
    findings = content["findings"]
    assert isinstance(findings, list)
    return [finding["state"] for finding in findings]


def test_the_directory_has_the_key_that_checks_the_journal(home: Path) -> None:
    for source in (("--config", home / "mqis.toml"), ("--store", home / "d.db")):
        content = check(home, *source, "--signed")
        assert content["ok"] is True, content
        assert states(content) == []
        assert content["records"]
    assert states(check(home)) == ["unchecked"], "without any key"


def test_the_key_is_printed_for_an_auditor(home: Path, tmp_path: Path) -> None:
    result = run("journal", "key", "PEC1", "--config", home / "mqis.toml")
    own = MachineKey.open(home / "signing.key")
    assert result.stdout == key_pem(own.public)
    listed = run("journal", "key", "PEC1", "--config", home / "mqis.toml", "--json").stdout
    assert json.loads(listed)["keys"] == [result.stdout]
    file = tmp_path / "pec1.pub"
    file.write_text(result.stdout)
    assert states(check(home, "--key", file)) == []
    assert states(check(home, "--key", home / "signing.key")) == []
    other = tmp_path / "other.key"
    MachineKey.open(other)
    assert states(check(home, "--key", other)) == ["foreign"]
    assert run("journal", "key", "nobody", "--config", home / "mqis.toml").exit_code == 1


def test_a_removed_end_is_missed_by_the_store(home: Path) -> None:
    (*_, last) = segments(home / "journal").values()
    data = last.read_bytes()
    config = home / "mqis.toml"
    last.unlink()
    try:
        content = check(home, "--config", config)
        assert "missing" in states(content)
        assert content["ok"] is False
    finally:
        last.write_bytes(data)
    assert states(check(home, "--config", config)) == []


def test_the_doctor_reports_a_renamed_segment(home: Path) -> None:
    assert _journal_errors(home) == []
    path = next(iter(segments(home / "journal").values()))
    data = path.read_bytes()
    try:
        path.rename(path.with_name("segment-0000000007.mqj"))
        assert any("the file was copied or renamed" in text for text in _journal_errors(home))
    finally:
        path.with_name("segment-0000000007.mqj").unlink()
        path.write_bytes(data)


def test_a_replaced_store_is_noticed(home: Path, tmp_path: Path) -> None:
    """The directory is the same, but it does not know what the journal has."""

    async def serve() -> None:
        async with DirectoryServer(load(home / "mqis.toml"), grace_s=1):
            pass

    store, export, other = home / "d.db", tmp_path / "d.jsonl", tmp_path / "other.db"
    assert run("export", export, "--store", store).exit_code == 0
    assert run("import", export, "--store", other, "--restore").exit_code == 0
    kept = store.read_bytes()
    try:
        store.write_bytes(other.read_bytes())
        assert any("the store was replaced by another one" in t for t in _journal_errors(home))
        with pytest.raises(MqisError, match="but the store has made only 0"):
            asyncio.run(serve())
    finally:
        store.write_bytes(kept)
    assert _journal_errors(home) == []


def test_changes_around_the_journal_are_missed(home: Path) -> None:
    """As a program makes them that writes into the store by itself."""
    store = home / "d.db"
    kept = store.read_bytes()
    try:
        with closing(SqliteStore(store, create=False)) as opened, opened.write() as tx:
            events = DirectoryEvents(tx, 1, SystemEntropy())
            events.create_directory_object(ObjectType.CN, props({PropId.CN_NAME: "Around"}))
        assert any("is in no record" in text for text in _journal_errors(home))
        assert "missing" in states(check(home, "--config", home / "mqis.toml"))
    finally:
        store.write_bytes(kept)


def _journal_errors(home: Path) -> list[str]:
    findings = examine(home / "mqis.toml")
    return [f.what for f in findings if f.check == "journal" and f.gravity is Gravity.ERROR]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        (b"hello", "is no key in PEM"),
        (b"-----BEGIN PRIVATE KEY-----\n", "is no key in PEM"),
    ],
)
def test_a_file_that_is_no_key(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(MqisError, match=reason):
        read_public_key(file)
