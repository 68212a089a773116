"""``mqis estate check`` on LDIF files, on stores and on a directory server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.estate.sources import check_directory, check_ldif
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.testing.ldap import ScriptedAnswer, ScriptedDirectory
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.ldif import read_ldif, write_ldif
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry
from tests.cli.commands import run
from tests.estate.planted import CONFIGURATION, ROOT, faults, sound, standing


def written(path: Path, entries: list[AddEntry]) -> Path:
    path.write_text("".join(write_ldif([*standing(), *entries])), "utf-8")
    return path


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [*sound(), *(entry for planted in faults().values() for entry in planted)]
    return written(tmp_path_factory.mktemp("estate") / "estate.ldif", entries)


def as_json(*arguments: str | Path, status: int) -> dict[str, Any]:
    done = run("estate", "check", *arguments, "--json")
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_planted_fault_of_a_file_is_found_once(faulty: Path, tmp_path: Path) -> None:
    repairs = tmp_path / "repairs.ldif"
    found = as_json(faulty, "--ldif", repairs, status=1)
    assert sorted(f["check"] for f in found["findings"]) == sorted(faults())
    assert all(f["symptom"] and f["advice"] and f["where"] for f in found["findings"])
    assert found["unknown"] == found["unreadable"] == []
    with repairs.open("rb") as file:
        records = list(read_ldif(file, "repairs"))
    assert len(records) >= sum(f["ldif"] is not None for f in found["findings"]) == 14


def test_findings_in_words(faulty: Path) -> None:
    done = run("estate", "check", faulty)
    assert done.exit_code == 1
    text = " ".join(done.stdout.split())
    assert "cloned_queue_manager, 1 finding: two computers have the identity" in text
    assert "users see: messages for one of them arrive at the other" in text
    assert "--ldif FILE writes the repairs" in text


def test_a_sound_file_is_clean(tmp_path: Path) -> None:
    done = run("estate", "check", written(tmp_path / "sound.ldif", sound()))
    assert done.exit_code == 0, done.output
    assert "no faults found" in done.stdout


def test_a_store_tells_what_it_cannot_tell(demo_store: Path) -> None:
    found = as_json("--store", demo_store, status=0)
    assert {"no_computer", "left_settings", "address_outside_site"} <= {
        limit["check"] for limit in found["unknown"]
    }
    counts = {kind: number for kind, number in found["objects"].items() if number}
    assert counts == {"machine": 20, "queue": 60, "site": 3, "link": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dn: CN=a\nobjectClass:: %%%\n", "line 2: the value of objectClass is not base64"),
        ("dn: CN=a\nchangetype: delete\n", "CN=a is a change"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.ldif"
    path.write_text(text)
    done = run("estate", "check", path)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())


def test_a_missing_file_and_two_sources(tmp_path: Path) -> None:
    assert run("estate", "check", tmp_path / "none.ldif").exit_code == 2
    assert run("estate", "check", "x.ldif", "--store", "y.db").exit_code == 2


def test_dns_tells_the_addresses_that_the_directory_does_not(tmp_path: Path) -> None:
    from ipaddress import ip_address

    bare = [
        AddEntry(entry.name, tuple(row for row in entry.attributes if row[0] != "networkAddress"))
        for entry in sound()
    ]
    path = written(tmp_path / "bare.ldif", bare)
    assert [limit.check for limit in check_ldif([path]).limits] == ["address_outside_site"]
    report = check_ldif([path], lambda host: [ip_address("10.2.0.1")] if "srv1" in host else [])
    assert report.limits == ()
    assert [found.check for found in report.findings] == ["address_outside_site"]


def test_a_search_that_the_server_refuses_is_told() -> None:
    def refuse(message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        if not isinstance(asked, SearchRequest) or not asked.base:
            return None
        return [SearchDone(LdapResult(ResultCode.UNWILLING_TO_PERFORM, "", "not today"))]

    async def examined() -> None:
        root = (
            ("defaultNamingContext", (ROOT.encode(),)),
            ("rootDomainNamingContext", (ROOT.encode(),)),
            ("configurationNamingContext", (CONFIGURATION.encode(),)),
        )
        async with ScriptedDirectory([SearchEntry("", root)], on_message=refuse) as server:
            options = ConnectingOptions((server.url,), method=BindMethod.ANONYMOUS)
            with pytest.raises(MqisError, match="not today") as caught:
                await check_directory([options])
            assert type(caught.value) is MqisError

    asyncio.run(examined())


def test_a_directory_server_shows_the_same_findings(faulty: Path) -> None:
    root = (
        ("defaultNamingContext", (ROOT.encode(),)),
        ("rootDomainNamingContext", (ROOT.encode(),)),
        ("configurationNamingContext", (CONFIGURATION.encode(),)),
    )
    with faulty.open("rb") as file:
        records = [record for record in read_ldif(file, "estate") if isinstance(record, AddEntry)]

    async def examined() -> list[str]:
        entries = [SearchEntry("", root), SearchEntry(CONFIGURATION, ())]
        entries += [SearchEntry(record.name, record.attributes) for record in records]
        async with ScriptedDirectory(entries, page_limit=7) as server:
            options = ConnectingOptions((server.url,), method=BindMethod.ANONYMOUS)
            report = await check_directory([options])
        assert report.limits == ()
        return sorted(finding.check for finding in report.findings)

    assert asyncio.run(examined()) == sorted(faults())
