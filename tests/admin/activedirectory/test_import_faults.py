"""``mqis import`` from a directory in which something is wrong: one clear line, or all of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mqis.config.stores import open_store
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest, SimpleBind
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchReference
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory import dying_server
from tests.admin.test_online_import import domain
from tests.runtime.ldap.certificates import server_context
from tests.waiting import DEADLINE_S


def command(url: str, store: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "mqis.cli.main", "import", url, "--store", str(store)),
        *("--method", "anonymous", "--json", *more),
    ]


def run(server: ScriptedDomain, store: Path, *more: str) -> tuple[int, str, str]:
    """Runs the command against a server; returns its status and what it printed."""

    async def running() -> tuple[int, str, str]:
        async with server:
            process = await asyncio.create_subprocess_exec(
                *command(server.url, store, *more),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, errors = await asyncio.wait_for(process.communicate(), DEADLINE_S)
            return process.returncode or 0, out.decode(), errors.decode()

    return asyncio.run(running())


def refused(server: ScriptedDomain, store: Path, reason: str, *more: str) -> None:
    """The command fails with one line that says why, and leaves no store."""
    status, out, errors = run(server, store, *more)
    assert (status, out) == (1, ""), errors
    assert reason in errors
    assert errors.count("\n") == 1, errors
    assert not store.exists()


def labels(store: Path) -> dict[str, object]:
    with closing(open_store(str(store))) as opened, opened.read() as view:
        assert opened.check() == []
        return {o.path or "": o.value(PropId.Q_LABEL) for o in view.objects(ObjectType.QUEUE)}


def test_an_expired_certificate(tmp_path: Path) -> None:
    server = domain()
    server.tls, server.ldaps = server_context(tmp_path, expired=True), True
    reason = "the certificate of the server has expired; renew it"
    refused(server, tmp_path / "estate.db", reason, "--ca-file", str(tmp_path / "ca.pem"))
    assert server.operations(SimpleBind) == server.operations(SearchRequest) == []


def test_a_search_that_refers_to_itself(tmp_path: Path) -> None:
    server = domain()

    def refer(message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        if isinstance(asked, SearchRequest) and "mSMQQueueType" in asked.attributes:
            back = f"{server.url}/{asked.base}"
            return [SearchDone(LdapResult(ResultCode.REFERRAL, referrals=(back,)))]
        return None

    server.on_message = refer
    refused(server, tmp_path / "estate.db", "referral (10)")
    assert server.connections == 1


def test_continuations_that_lead_in_a_circle_are_not_followed(tmp_path: Path) -> None:
    """The root of a domain refers to its configuration, which is read anyway."""
    server = domain()
    asked_twice = ScriptedDomain._search

    def search(self: ScriptedDomain, request: SearchRequest, controls: object) -> ScriptedAnswer:
        found = asked_twice(self, request, controls)  # type: ignore[arg-type]
        return [SearchReference((f"{server.url}/{request.base}",)), *found]

    server._search = search.__get__(server)  # type: ignore[method-assign]
    status, out, errors = run(server, tmp_path / "estate.db")
    assert status == 0, errors
    assert json.loads(out)["objects"]["queue"] == 3
    assert server.connections == 1


@pytest.mark.parametrize("began", [2**63 - 2, 2**64 - 2])
def test_numbers_of_changes_that_jump(tmp_path: Path, began: int) -> None:
    """An entry that is numbered behind the beginning was changed meanwhile, however far."""
    server = domain()
    for at, found in enumerate(server.entries):
        if not found.name:
            rows = {**dict(found.attributes), "highestCommittedUSN": (b"%d" % began,)}
            server.entries[at] = type(found)(found.name, tuple(rows.items()))
    place = f"CN=msmq,CN=SRV1,CN=Computers,{server.root}"
    server.put(f"CN=new,{place}", objectClass=b"mSMQQueue", uSNChanged=b"%d" % (began + 1))
    server.put(f"CN=old,{place}", objectClass=b"mSMQQueue", uSNChanged=b"%d" % began)
    status, out, errors = run(server, tmp_path / "estate.db")
    assert status == 0, errors
    (note,) = json.loads(out)["notes"]
    assert note["count"] == 1
    assert note["entries"][0].startswith("CN=new,")


@pytest.mark.parametrize("number", [b"9" * 5000, b"1e9", "\u0661".encode(), b""])
def test_a_number_of_changes_that_is_none(tmp_path: Path, number: bytes) -> None:
    server = domain()
    for at, found in enumerate(server.entries):
        if not found.name:
            rows = {**dict(found.attributes), "highestCommittedUSN": (number,)}
            server.entries[at] = type(found)(found.name, tuple(rows.items()))
    refused(server, tmp_path / "estate.db", "highestCommittedUSN")


def test_names_and_labels_with_special_characters(tmp_path: Path) -> None:
    server = domain(queues=0)
    place = f"CN=msmq,CN=SRV1,CN=Computers,{server.root}"
    for name, label in (
        ("*)(cn\\=*", b"*()\\"),
        ("a\\,b", b"(&(objectClass=*))"),
        ("nul label", b"a\0b"),
        ("bad label", b"\xff\xfe"),
        ("nul\\00name", b"plain"),
    ):
        server.put(f"CN={name},{place}", objectClass=b"mSMQQueue", mSMQLabelEx=label)
    status, out, errors = run(server, tmp_path / "estate.db")
    assert status == 0, errors
    notes = json.loads(out)["notes"]
    assert [note["count"] for note in notes if note["what"] == "mSMQLabelEx does not fit"] == [2]
    left = [note for note in notes if note["what"].startswith("left out")]
    assert sum(note["count"] for note in left) == 1
    assert labels(tmp_path / "estate.db") == {
        "srv1\\*)(cn=*": "*()\\",
        "srv1\\a,b": "(&(objectClass=*))",
        "srv1\\nul label": "",
        "srv1\\bad label": "",
    }


# --- a domain controller that dies ----------------------------------------------------------------


@contextmanager
def domain_controller(searches: int = 0) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", dying_server.__name__, str(searches)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def imported(url: str, store: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(url, store), capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )


@pytest.mark.parametrize("searches", [2, 5, 12])
def test_a_domain_controller_that_is_killed(tmp_path: Path, searches: int) -> None:
    store = tmp_path / "estate.db"
    with domain_controller(searches) as url:
        failed = imported(url, store)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert not store.exists()
    with domain_controller() as url:
        done = imported(url, store)
    assert done.returncode == 0, done.stderr
    assert len(labels(store)) == dying_server.QUEUES
