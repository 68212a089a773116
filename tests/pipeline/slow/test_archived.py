"""Rebuilding the past from an archive in a real S3 server, after the directory server's disk is
gone."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqis.config.stores import open_store
from mqis.protocol.directory.export_lines import exported_lines
from mqis.runtime import archive_thread
from mqis.server import replication
from mqis.server.directory_server import DirectoryServer
from mqis.storage.archive import Archiver
from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.keeping import Keeper
from tests.cli.commands import run
from tests.s3server import S3Server
from tests.server.enterprises import Site, create
from tests.waiting import until

pytestmark = pytest.mark.interop

#: A moment, and the directory that the server had then.
Past = tuple[datetime, list[str]]


@pytest.fixture
def site(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A PEC that begins a segment with every record, takes a snapshot after three, which the
    configuration does not allow, and keeps one of them on its disk."""

    def often(*given: Any, **named: Any) -> Keeper:
        return Keeper(*given, **named | {"every": 3})

    monkeypatch.setattr(replication, "Keeper", often)
    monkeypatch.setitem(Journal.__init__.__kwdefaults__, "segment_bytes", 1)  # type: ignore[arg-type]
    monkeypatch.setitem(archive_thread.ArchiveThread.__init__.__kwdefaults__, "look_s", 0.05)  # type: ignore[arg-type]
    made = Site(tmp_path)
    made.found("pec1")
    section: dict[str, object] = {
        "journal": "journal",
        "archive": s3.uri("bucket/archive"),
        "keep_snapshots": 1,
    }
    made.write("pec1", server={"role": "pec", "site": "Delft"}, replication=section)
    return made


def archiver_of(server: DirectoryServer) -> Archiver:
    assert server._replication is not None
    assert server._replication.journal is not None
    assert server._replication.journal.archiver is not None
    return server._replication.journal.archiver


def seen(site: Site) -> Past:
    """The directory of now; the next change has a later time."""
    with closing(open_store(str(site.homes["pec1"] / "d.db"))) as store, store.read() as view:
        lines = list(exported_lines(view)[1])
    moment = datetime.now(UTC)
    sleep(0.01)
    return moment, lines


async def live(site: Site) -> list[Past]:
    """Makes changes, and looks at the directory between them, until the beginning of the journal
    is in the archive only."""
    home = site.homes["pec1"]
    pasts = []
    async with site.serving("pec1") as pec:
        for number in range(12):
            await create(pec, f"pec1\\q{number}", f"label {number}")
            if number in (1, 5, 9):
                pasts.append(seen(site))
        status = archiver_of(pec).status
        await until(lambda: status().waiting == 0 and 1 not in segments(home / "journal"))
    return pasts


def test_the_past_is_rebuilt_from_the_archive_alone(
    spark: SparkSession, s3: S3Server, site: Site, tmp_path: Path
) -> None:
    pasts = asyncio.run(live(site))
    shutil.rmtree(site.homes["pec1"])
    place, tables, out = s3.uri("bucket/archive"), tmp_path / "tables", tmp_path / "then.jsonl"
    done = run("pipeline", "ingest", "--journals", place, "--tables", tables, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["errors"] == 0
    for moment, lines in pasts:
        done = run("pipeline", "rebuild", out, "--at", moment.isoformat(), "--tables", tables)
        assert done.exit_code == 0, done.output
        # A rebuild is no server's.
        told, expected = out.read_text("ascii").splitlines(), json.loads(lines[0])
        assert expected["server"]["name"] == "pec1"
        assert json.loads(told[0]) == expected | {"server": None}
        assert told[1:-1] == lines[1:-1]
    assert len({len(lines) for _, lines in pasts}) == 3
