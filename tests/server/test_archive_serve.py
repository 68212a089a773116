"""A server archives its journal by itself, and a store that refuses or hangs does not delay it."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from time import monotonic

import pytest

from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.runtime import archive_thread
from mqis.server.directory_server import DirectoryServer
from mqis.storage.archive import Archiver, archived_journals
from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segments
from mqis.views.doctor.examination import examine
from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.server.enterprises import Site, create
from tests.waiting import until


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record begins a segment, so that there is something to archive at once."""
    monkeypatch.setitem(Journal.__init__.__kwdefaults__, "segment_bytes", 1)  # type: ignore[arg-type]
    monkeypatch.setitem(archive_thread.ArchiveThread.__init__.__kwdefaults__, "look_s", 0.05)  # type: ignore[arg-type]


def served_site(tmp_path: Path, place: str) -> Site:
    site = Site(tmp_path)
    site.found("pec1")
    section: dict[str, object] = {"journal": "journal", "archive": place}
    site.write("pec1", server={"role": "pec", "site": "Delft"}, replication=section)
    (site.homes["pec1"] / "mqis.toml").chmod(0o600)
    return site


def archiver_of(server: DirectoryServer) -> Archiver:
    service = server._replication
    assert service is not None
    assert service.journal is not None
    assert service.journal.archiver is not None
    return service.journal.archiver


def doctor_about_archive(home: Path) -> list[str]:
    return [
        f"{f.gravity.name} {f.what}" for f in examine(home / "mqis.toml") if f.check == "archive"
    ]


def test_closed_segments_go_to_the_archive(tmp_path: Path) -> None:
    site = served_site(tmp_path, "archive")
    home = site.homes["pec1"]

    async def serve() -> None:
        async with site.serving("pec1") as pec:
            for number in range(3):
                await create(pec, f"pec1\\q{number}", "x")
            archiver = archiver_of(pec)
            await until(lambda: archiver.status().files > 3 or None)

    asyncio.run(serve())
    (journal,) = archived_journals(home / "archive")
    assert len(journal.files) > 3
    assert any("can be reached" in text for text in doctor_about_archive(home))
    checked = run("journal", "check", home / "archive", "--config", home / "mqis.toml", "--signed")
    assert checked.exit_code == 0, checked.stdout
    done = run("journal", "archive", home / "journal", home / "archive", "--json")
    assert done.exit_code == 0, done.stdout
    restored = run("journal", "restore", home / "archive", tmp_path / "restored")
    assert restored.exit_code == 0, restored.stdout
    assert len(segments(tmp_path / "restored")) == len(segments(home / "journal")) - 1


@pytest.mark.req("SEC-13-02", "SEC-13-04")
@pytest.mark.parametrize("kind", ["hangs", "refuses"])
def test_a_store_that_does_not_answer_delays_nothing(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyarrow")
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if kind == "refuses":
            silent.close()
        settings = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=x"
        credential = "access_key=AKIAKEY&secret_key=hush-hush"
        site = served_site(tmp_path, f"s3://bucket/x?{settings}&{credential}")

        async def serve() -> float:
            async with site.serving("pec1") as pec:
                for number in range(3):
                    await create(pec, f"pec1\\q{number}", "x")
                archiver = archiver_of(pec)
                await until(lambda: archiver.status().waiting or None)
                if kind == "refuses":
                    await until(lambda: archiver.status().failures or None)
                    assert "cannot be reached" in archiver.status().error
                assert "hush" not in str(archiver.status())
                return monotonic()

        closing = asyncio.run(serve())
        assert monotonic() - closing < 15  # the store's own limit is 40 s
    home = site.homes["pec1"]
    assert len(segments(home / "journal")) > 3
    assert "hush" not in caplog.text
    if kind == "refuses":
        assert "the journal is not archived" in caplog.text
        (told,) = doctor_about_archive(home)
        assert told.startswith("ERROR s3://bucket/x")
        assert "hush" not in told


def test_an_archive_without_a_journal_is_refused(tmp_path: Path) -> None:
    site = served_site(tmp_path, "archive")
    home = site.homes["pec1"]
    section: dict[str, object] = {"archive": "archive"}
    site.write("pec1", server={"role": "pec", "site": "Delft"}, replication=section)

    async def serve() -> None:
        async with DirectoryServer(load(home / "mqis.toml"), grace_s=1):
            pass

    with pytest.raises(MqisError, match=r"set replication\.journal as well"):
        asyncio.run(serve())


@pytest.mark.req("SEC-13-02")
def test_a_credential_in_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    site = served_site(tmp_path, "s3://b/p?access_key=AKIAKEY&secret_key=hush-hush")
    file = site.homes["pec1"] / "mqis.toml"
    assert load(file).replication.archive
    file.chmod(0o644)
    with pytest.raises(ConfigError, match=r"replication\.archive: it holds a credential") as caught:
        load(file)
    assert "hush" not in str(caught.value)


@pytest.mark.req("SEC-13-02")
def test_a_wrong_place_is_refused_without_its_credential(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"replication\.archive.*belong together") as caught:
        served_site(tmp_path, "s3://b/p?secret_key=hush-hush")
    assert "hush" not in str(caught.value)
