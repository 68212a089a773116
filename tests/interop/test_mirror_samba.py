"""``mqis mirror`` follows a Samba domain controller: seen at once, killed, stopped, read-only."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect
from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.errors import MissingStore
from mqis.protocol.ports import Store
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.storage.memory_store import MemoryStore
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.estate.planted import OU, sound
from tests.interop.samba_domain import PASSWORD, SCRIPT, USER, load_entries, samba_domain
from tests.waiting import until, wait_until

pytestmark = pytest.mark.interop

READER, READER_PASSWORD = "reader@corp.example", "Passw0rd.2"
HOST = f"CN=msmq,CN=WS1,{OU}"
QUEUE = (("objectClass", (b"mSMQQueue",)),)


def fill(directory: Path) -> None:
    """Loads an estate without faults, and makes an account that may only read."""
    load_entries(directory, sound())
    conf = str(directory / "etc/smb.conf")
    created = ["samba-tool", "user", "create", "reader", READER_PASSWORD, "-s", conf]
    done = subprocess.run(created, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (directory / "admin.pw").write_text(PASSWORD)
    (directory / "admin.pw").chmod(0o600)
    (directory / "reader.pw").write_text(READER_PASSWORD)
    (directory / "reader.pw").chmod(0o600)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one", before_start=fill) as directory:
        yield directory


def options(domain: Path, *, reader: bool = False) -> ConnectingOptions:
    return ConnectingOptions(
        ("ldaps://127.0.0.1",),
        READER if reader else USER,
        ca_file=domain / "private/tls/own.pem",
        server_name="dc1.corp.example",
        password_file=domain / ("reader.pw" if reader else "admin.pw"),
    )


def command(domain: Path, store: Path, *more: str, reader: bool = False) -> list[str]:
    chosen = options(domain, reader=reader)
    return [
        sys.executable, "-m", "mqis.cli.main", "mirror", chosen.urls[0], "--store", str(store),
        "--user", chosen.user, "--password-file", str(chosen.password_file),
        "--ca-file", str(chosen.ca_file), "--server-name", str(chosen.server_name), *more,
    ]  # fmt: skip


def held(store: Store) -> dict[tuple[str, str], dict[int, object]]:
    with store.read() as view:
        return {
            (kind.label, str(obj.id)): dict(obj.properties)
            for kind in ORDER
            for obj in view.objects(kind)
        }


def queues(store: Path) -> list[str]:
    try:
        found = open_store(str(store))
    except MissingStore:  # it is being made
        return []
    with found.read() as view:
        names = sorted(obj.path or "" for obj in view.objects(ObjectType.QUEUE))
    found.close()
    return names


async def whole(domain: Path) -> dict[tuple[str, str], dict[int, object]]:
    """A fresh mirror in memory."""
    client, _ = await connect(options(domain))
    await EstateMirror(client, store := MemoryStore(), "corp.example").round()
    await client.close()
    return held(store)


async def add(client: LdapDirectoryClient, name: str) -> None:
    await client.apply(AddEntry(f"CN={name},{HOST}", QUEUE))


def account(name: str) -> AttributeChange:
    return AttributeChange(ModifyKind.REPLACE, "sAMAccountName", (f"{name}$".encode(),))


@pytest.mark.parametrize("reader", [False, True], ids=["administrator", "plain account"])
def test_rounds(domain: Path, *, reader: bool) -> None:
    async def test() -> None:
        admin, _ = await connect(options(domain))
        client, _ = await connect(options(domain, reader=reader))
        everything = float("inf")  # looks for deletions in each round
        mirror = EstateMirror(
            client, store := MemoryStore(), "corp.example", sweep_share=everything
        )
        first = await mirror.round()
        assert first.fresh
        assert first.left_out == {}
        assert first.cursor.sees_deletions is not reader
        assert first.cursor.mode == ("dirsync_readable" if reader else "dirsync")
        text = f"Seen by {options(domain, reader=reader).user} *()\\".encode()
        label = AttributeChange(ModifyKind.REPLACE, "mSMQLabelEx", (text,))
        await add(admin, "new")
        await admin.apply(ModifyEntry(f"CN=orders,{HOST}", (label,)))
        assert (await mirror.round()).counts.written == 2
        assert held(store) == await whole(domain)
        await admin.apply(DeleteEntry(f"CN=new,{HOST}"))
        await admin.apply(RenameEntry(f"CN=WS1,{OU}", "CN=WS1x"))
        await mirror.round()
        assert held(store) == await whole(domain)
        # A machine is called by the account of its computer, not by its entry.
        with store.read() as view:
            assert view.find(ObjectType.MACHINE, "WS1") is not None
        await admin.apply(ModifyEntry(f"CN=WS1x,{OU}", (account("WS1x"),)))
        await mirror.round()
        assert held(store) == await whole(domain)
        with store.read() as view:
            names = [obj.path for obj in view.objects(ObjectType.QUEUE)]
        assert names == ["ws1x\\orders"]
        await admin.apply(RenameEntry(f"CN=WS1x,{OU}", "CN=WS1"))
        await admin.apply(ModifyEntry(f"CN=WS1,{OU}", (account("WS1"),)))
        await mirror.round()
        assert (await mirror.round()).counts.written == 0
        assert held(store) == await whole(domain)
        await client.close()
        await admin.close()

    asyncio.run(test())


def test_a_change_is_seen_within_a_second_and_a_dead_controller_is_waited_for(
    domain: Path, tmp_path: Path
) -> None:
    store = tmp_path / "estate.db"
    lines = (tmp_path / "out").open("wb")
    process = subprocess.Popen(
        command(domain, store, "--json", "--interval", "60"), stdout=lines, stderr=lines
    )

    async def seen(client: LdapDirectoryClient, name: str) -> float:
        await add(client, name)
        began = time.monotonic()
        await until(lambda: f"ws1\\{name}" in queues(store), f"{name} in the mirror")
        return time.monotonic() - began

    async def test() -> None:
        client, _ = await connect(options(domain))
        assert await seen(client, "wake") >= 0  # the watch has begun when this is seen
        assert min([await seen(client, f"fast{n}") for n in range(3)]) < 1
        await client.close()

    try:
        wait_until(lambda: store.exists() and queues(store) == ["ws1\\orders"], "everything")
        asyncio.run(test())
        subprocess.run([SCRIPT, "stop", domain], check=True, capture_output=True)
        wait_until(lambda: b"waiting" in (tmp_path / "out").read_bytes(), "the wait")
        subprocess.run(
            [SCRIPT, "start", domain],
            check=True,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )

        async def after() -> None:
            client, _ = await connect(options(domain))
            await add(client, "after")
            await client.close()

        asyncio.run(after())
        wait_until(lambda: "ws1\\after" in queues(store), "the change after the wait")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        lines.close()


def test_killed_and_started_again(domain: Path, tmp_path: Path) -> None:
    store = tmp_path / "estate.db"

    async def test() -> None:
        client, _ = await connect(options(domain))
        for number in range(4):
            process = subprocess.Popen(
                command(domain, store, reader=True), stdout=subprocess.DEVNULL
            )
            await asyncio.sleep(0.5 + number)
            await add(client, f"killed{number}")
            process.kill()
            process.wait()
        done = subprocess.run(command(domain, store, "--once", reader=True), check=False)
        assert done.returncode == 0
        found = open_store(str(store))
        assert held(found) == await whole(domain)
        with found.read() as view:
            labels = [obj.value(PropId.Q_QMID) for obj in view.objects(ObjectType.QUEUE)]
        assert len(labels) >= 5
        found.close()
        await client.close()

    asyncio.run(test())
