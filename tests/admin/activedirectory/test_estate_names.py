"""Names as estates have them: umlauts, blanks, semicolons, through every command, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqis.cli.main import app
from mqis.config.stores import open_store
from mqis.protocol.activedirectory.queuename import split_name
from mqis.testing.followed import FollowedDomain
from mqis.testing.ldap import name_of
from mqis.wire.ldap.names import DistinguishedName, escape_value
from mqis.wire.mqds.objecttype import ObjectType

COMPUTER = "büro 1"
#: What Active Directory holds; the last is longer than MS-MQMQ allows, and cut into two attributes.
NAMES = (
    "bestellungen äöüß",
    "two words",
    "a;b",
    " blanks at both ends ",
    "注文",
    'comma, plus + "quote" <less> #number = /slash',
    "line\nfeed",
    "😀",
    "i̇stanbul",
    "ä" * 70,
    "q" * 147,
)


def run(*command: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == status, result.output
    return result


def estate(server: FollowedDomain) -> None:
    site = server.add_site("Köln Süd")
    computer = server.add_computer(COMPUTER)
    server.put(f"CN=msmq,{computer}", objectClass=b"mSMQConfiguration", mSMQSites=site.raw)
    for name in NAMES:
        cn, rest = split_name(name)
        extra = {"mSMQQueueNameExt": rest.encode()} if rest else {}
        place = f"CN={escape_value(cn)},CN=msmq,{computer}"
        server.put(place, objectClass=b"mSMQQueue", mSMQLabelEx=name[:60].encode(), **extra)


def served(
    test: Callable[[FollowedDomain], Awaitable[None]],
    fill: Callable[[FollowedDomain], None] = estate,
) -> None:
    async def serve() -> None:
        async with FollowedDomain.of() as server:
            fill(server)
            await test(server)

    asyncio.run(serve())


def paths(store: Path) -> set[str]:
    with closing(open_store(str(store))) as found, found.read() as view:
        return {obj.path or "" for obj in view.objects(ObjectType.QUEUE)}


def queues(server: FollowedDomain) -> dict[DistinguishedName, tuple[bytes, ...]]:
    """The queues of a domain, with the rest of long names."""
    return {
        name_of(e.name): e.values("mSMQQueueNameExt")
        for e in server.entries
        if b"mSMQQueue" in e.values("objectClass")
    }


WANTED = {f"{COMPUTER}\\{name}" for name in NAMES}


def test_a_domain_is_imported_and_mirrored_with_all_its_names(tmp_path: Path) -> None:
    async def test(server: FollowedDomain) -> None:
        reached = (server.url, "--method", "anonymous", "--json", "--store")
        imported, followed = tmp_path / "imported.db", tmp_path / "followed.db"
        done = await asyncio.to_thread(run, "import", *reached, str(imported))
        assert "notes" not in json.loads(done.stdout)
        assert paths(imported) == WANTED
        done = await asyncio.to_thread(run, "mirror", *reached, str(followed), "--once")
        assert json.loads(done.stdout)["left_out"] == []
        assert paths(followed) == WANTED

    served(test)


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    store = tmp_path / "estate.db"

    async def test(server: FollowedDomain) -> None:
        reached = (server.url, "--method", "anonymous", "--store", str(store))
        await asyncio.to_thread(run, "import", *reached)

    served(test)
    return store


def test_names_are_shown_found_and_routed(imported: Path) -> None:
    store = ("--store", str(imported))
    listed = json.loads(run("lookup", "queue", "--json", *store).stdout)
    assert {row["path"] for row in listed} == WANTED
    for name in NAMES:
        path = f"{COMPUTER.upper()}\\{name.upper() if name.isascii() else name}"
        got = json.loads(run("get", "queue", path, "--json", *store).stdout)
        assert got["path"] == f"{COMPUTER}\\{name}"
        run("route", COMPUTER, f"{COMPUTER}\\{name}", *store)
    assert "line\\nfeed" in run("check", *store, status=1).output


def test_names_come_back_from_exports(imported: Path, tmp_path: Path) -> None:
    lines, ldif = tmp_path / "estate.jsonl", tmp_path / "estate.ldif"
    run("export", str(lines), "--store", str(imported))
    run("import", str(lines), "--store", str(tmp_path / "lines.db"))
    assert paths(tmp_path / "lines.db") == WANTED
    run("export", "--ldif", str(ldif), "--base", "DC=corp,DC=example", "--store", str(imported))
    run("import", str(ldif), "--store", str(tmp_path / "ldif.db"))
    assert paths(tmp_path / "ldif.db") == WANTED


def test_names_are_published_as_they_were(imported: Path) -> None:
    original: list[dict[DistinguishedName, tuple[bytes, ...]]] = []

    async def remember(server: FollowedDomain) -> None:
        original.append(queues(server))

    def empty(server: FollowedDomain) -> None:
        server.add_site("Köln Süd")
        server.add_computer(COMPUTER)

    async def publish(server: FollowedDomain) -> None:
        reached = (server.url, "--method", "anonymous", "--store", str(imported))
        await asyncio.to_thread(run, "publish", *reached, "--write")
        assert queues(server) == original[0]

    served(remember)
    served(publish, empty)


def test_everything_that_cannot_be_imported_is_listed(tmp_path: Path) -> None:
    """Text shows three examples, JSON every entry with its reason."""

    def broken(server: FollowedDomain) -> None:
        estate(server)
        for number in range(24):
            place = f"CN=bad{number:02},CN=msmq,CN={COMPUTER},CN=Computers,{server.root}"
            server.put(place, objectClass=b"mSMQQueue", nTSecurityDescriptor=b"garbled")

    async def test(server: FollowedDomain) -> None:
        reached = (server.url, "--method", "anonymous", "--store")
        done = await asyncio.to_thread(run, "import", *reached, str(tmp_path / "a.db"), "--json")
        (note,) = json.loads(done.stdout)["notes"]
        assert note["count"] == len(note["entries"]) == 24
        assert {entry[:8] for entry in note["entries"]} == {f"CN=bad{n:02}" for n in range(24)}
        done = await asyncio.to_thread(run, "import", *reached, str(tmp_path / "b.db"))
        assert "24 x " in done.output
        assert done.output.count("CN=bad") == 3

    served(test, broken)


def test_a_garbled_value_is_noted_and_the_queue_imported(tmp_path: Path) -> None:
    """As a mirror does; the base priority is not silently another."""

    def broken(server: FollowedDomain) -> None:
        estate(server)
        at = f"CN=msmq,CN={COMPUTER},CN=Computers,{server.root}"
        kind = b"mSMQQueue"
        server.put(f"CN=high,{at}", objectClass=kind, mSMQBasePriority=b"99999")
        server.put(f"CN=odd,{at}", objectClass=kind, mSMQPrivacyLevel=b"9")

    async def test(server: FollowedDomain) -> None:
        reached = (server.url, "--method", "anonymous", "--json", "--store")
        done = await asyncio.to_thread(run, "import", *reached, str(tmp_path / "a.db"))
        notes = {note["what"]: note["entries"] for note in json.loads(done.stdout)["notes"]}
        (high,) = notes["mSMQBasePriority does not fit"]
        assert "99999 does not fit: it is 32767 here" in high
        (odd,) = notes["mSMQPrivacyLevel does not fit"]
        assert "9 is none of 0, 1, 2" in odd
        assert paths(tmp_path / "a.db") == WANTED | {f"{COMPUTER}\\high", f"{COMPUTER}\\odd"}

    served(test, broken)
