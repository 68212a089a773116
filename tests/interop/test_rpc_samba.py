"""Samba judges our RPC server, and its server our client."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import NDR20, NDR64
from mqis.wire.rpc.tower import Tower
from tests.interop.rpc_echo import DOMAIN, PASSWORD, USER, EchoService, echo_server
from tests.interop.rpc_samba_server import Unavailable, samba_server
from tests.interop.rpc_threads import in_thread
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def documented(heading: str) -> dict[str, str]:
    """The table of failing tests below a heading of docs/interop.md, with the reasons."""
    text = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([\w.]+) \| (.+) \|$", section, re.MULTILINE)
    return {name: reason for name, reason in rows if name != "test"}


def run(*arguments: str) -> dict[str, str]:
    """The outcomes of ``tools/samba_raw.sh``, by test."""
    done = subprocess.run(
        [str(ROOT / "tools" / "samba_raw.sh"), *arguments],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
        check=False,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "the server complained"
    outcomes = [line.split(" ", 2) for line in done.stdout.splitlines()]
    return {name: " ".join([outcome, *rest]) for outcome, name, *rest in outcomes}


def failed(outcomes: dict[str, str]) -> set[str]:
    return {name for name, outcome in outcomes.items() if outcome.startswith("failed")}


@pytest.mark.slow
def test_raw_protocol_fails_exactly_where_documented() -> None:
    outcomes = run()

    assert len(outcomes) >= 194
    assert not [name for name, outcome in outcomes.items() if outcome.startswith("skipped")]
    expected = documented("Samba raw_protocol: what does not pass")
    surprising = failed(outcomes) ^ set(expected)
    assert not surprising, {name: outcomes.get(name) for name in surprising}


@pytest.mark.slow
def test_with_a_kdc_only_pipes_fail() -> None:
    outcomes = run("--kerberos")

    expected = documented("Samba raw_protocol: what does not pass")
    pipes = {name for name, reason in expected.items() if reason == "SMB pipe"}
    surprising = failed(outcomes) ^ pipes
    assert not surprising, {name: outcomes.get(name) for name in surprising}


def test_torture_of_mapper_and_management() -> None:
    outcomes = run("--torture")

    assert len(outcomes) == 6
    assert failed(outcomes) == set(documented("smbtorture: what does not pass"))


# --- rpcecho --------------------------------------------------------------------------------------

ECHO_TESTS = {
    "echo.addone",
    "echo.sinkdata",
    "echo.echodata",
    "echo.sourcedata",
    "echo.testcall",
    "echo.testcall2",
    "echo.enum",
    "echo.surrounding",
    "echo.doublepointer",
    "echo.sleep",
}
NONE, CONNECT, PACKET, INTEGRITY, PRIVACY = 1, 2, 4, 5, 6
#: Options of Samba's binding string, and what has to arrive: level, NDR64, big-endian.
BINDINGS = [
    ("", (NONE, False, False)),
    ("bigendian", (NONE, False, True)),
    ("ndr64", (NONE, True, False)),
    ("ntlm,connect", (CONNECT, False, False)),
    ("ntlm,packet", (PACKET, False, False)),
    ("ntlm,sign", (INTEGRITY, False, False)),
    ("ntlm,seal", (PRIVACY, False, False)),
    ("spnego,connect", (CONNECT, False, False)),
    ("spnego,packet", (PACKET, False, False)),
    ("spnego,sign", (INTEGRITY, False, False)),
    ("spnego,seal", (PRIVACY, False, False)),
    ("spnego,seal,bigendian", (PRIVACY, False, True)),
    ("spnego,sign,ndr64", (INTEGRITY, True, False)),
    ("ntlm,seal,ndr64", (PRIVACY, True, False)),
]


@pytest.fixture(scope="module")
def smbtorture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    program = shutil.which("smbtorture")
    if program is None:
        pytest.skip("there is no smbtorture (Debian: samba-testsuite)")
    configuration = tmp_path_factory.mktemp("smbtorture") / "smb.conf"
    configuration.write_text(f"[global]\nworkgroup = {DOMAIN}\n")
    return [program, f"--configfile={configuration}"]


@pytest.fixture(scope="module")
def echo_port() -> Iterator[int]:
    with in_thread(echo_server()) as port:
        yield port


def echo_command(smbtorture: list[str], port: int, options: str, password: str) -> list[str]:
    binding = ",".join(filter(None, [str(port), options]))
    user = f"{DOMAIN}/{USER}%{password}" if "," in options else "%"
    return [*smbtorture, "-U", user, f"ncacn_ip_tcp:127.0.0.1[{binding}]", "rpc.echo"]


@pytest.fixture(scope="module")
def echoed(smbtorture: list[str], echo_port: int) -> dict[str, tuple[str, set[object]]]:
    """All bindings at once: each waits three seconds for its overlapping sleeps."""
    running = {}
    for options, _ in BINDINGS:
        command = echo_command(smbtorture, echo_port, options, PASSWORD)
        running[options] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    outputs = {
        options: process.communicate(timeout=DEADLINE_S)[0] for options, process in running.items()
    }
    return {options: (output, set(EchoService.seen)) for options, output in outputs.items()}


@pytest.mark.parametrize(("options", "arrived"), BINDINGS, ids=[b[0] or "none" for b in BINDINGS])
def test_torture_of_rpcecho(
    echoed: dict[str, tuple[str, set[object]]], options: str, arrived: tuple[int, bool, bool]
) -> None:
    output, seen = echoed[options]

    passed = set(re.findall(r"^success: (\S+)", output, re.MULTILINE))
    assert passed == ECHO_TESTS, output
    assert arrived in seen, "Samba did not call the way its options say"


@pytest.mark.parametrize("options", ["ntlm,sign", "spnego,seal", "ntlm,connect"])
def test_torture_with_a_wrong_password(smbtorture: list[str], echo_port: int, options: str) -> None:
    done = subprocess.run(
        echo_command(smbtorture, echo_port, options, "wrong"),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.returncode != 0
    assert "success: " not in done.stdout


# --- Samba as the server --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mapper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    try:
        with samba_server(tmp_path_factory.mktemp("samba")) as where:
            yield where
    except Unavailable as reason:
        pytest.skip(f"Samba's server: {reason}")


def test_our_client_reads_the_endpoint_map_of_samba(mapper: tuple[str, int]) -> None:
    async def look() -> tuple[list[epmapper.EndpointEntry], int]:
        async with await RpcClient.connect(*mapper, [epmapper.SYNTAX]) as client:
            entries: list[epmapper.EndpointEntry] = []
            handle, pages = ContextHandle.NULL, 0
            while pages == 0 or handle:
                asked = epmapper.LookupAsked(0, None, None, 1, handle, 10)
                found = await invoke(
                    client, epmapper.EPMAPPER, epmapper.EPT_LOOKUP, asked, given={"max_entries": 10}
                )
                entries += found.entries
                handle, pages = found.handle, pages + 1
            return entries, pages

    entries, pages = asyncio.run(look())

    assert pages == -(-len(entries) // 10) > 1
    towers = [Tower.from_bytes(entry.tower.octets) for entry in entries if entry.tower]
    assert len(towers) == len(entries)
    own = [tower for tower in towers if tower.interface == epmapper.SYNTAX]
    assert mapper in [(tower.address, tower.port) for tower in own]


def test_our_client_asks_samba_where_something_is(mapper: tuple[str, int]) -> None:
    async def ask() -> epmapper.MapFound:
        tower = epmapper.TowerOctets(Tower.tcp(epmapper.SYNTAX, 0, "0.0.0.0").to_bytes())
        asked = epmapper.MapAsked(None, tower, ContextHandle.NULL, 4)
        async with await RpcClient.connect(*mapper, [epmapper.SYNTAX]) as client:
            return await invoke(
                client, epmapper.EPMAPPER, epmapper.EPT_MAP, asked, given={"max_towers": 4}
            )

    found = asyncio.run(ask())

    assert found.status == epmapper.EpmStatus.OK
    ports = [Tower.from_bytes(tower.octets).port for tower in found.towers if tower]
    assert ports == [mapper[1]]


def test_our_client_and_the_management_interface_of_samba(mapper: tuple[str, int]) -> None:
    async def ask() -> tuple[mgmt.InqIfIds, mgmt.Listening]:
        async with await RpcClient.connect(*mapper, [epmapper.SYNTAX]) as client:
            await client.add_interface(mgmt.SYNTAX)
            assert client.transfer(mgmt.SYNTAX) in (NDR20, NDR64)
            ids = await invoke(client, mgmt.MGMT, mgmt.INQ_IF_IDS, mgmt.Nothing())
            listening = await invoke(client, mgmt.MGMT, mgmt.IS_SERVER_LISTENING, mgmt.Nothing())
            with pytest.raises(RpcFault):
                await client.call(mgmt.SYNTAX, 77, b"")
            return ids, listening

    ids, listening = asyncio.run(ask())

    assert ids.vector is not None
    assert epmapper.SYNTAX.uuid in [i.uuid for i in ids.vector.ids if i]
    assert listening == mgmt.Listening(0, 1)
