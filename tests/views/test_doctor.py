"""The doctor's findings on healthy servers and on servers in trouble."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.file import load, override
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.stores import open_store
from mqis.findings import Finding, Gravity
from mqis.protocol.replication.server_identity import Role, Server
from mqis.runtime.authentication.ntlm_clock import clock_difference_s
from mqis.server.accounts import AccountsFile
from mqis.server.identity import identify
from mqis.views.doctor import peer_checks
from mqis.views.doctor.examination import check_server, examine, examine_run
from mqis.views.doctor.patient import KnownNeighbour
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.security.sid import ADMINISTRATORS
from tests.enterprise.monitors import closing_monitors
from tests.enterprise.monitors import told as monitor_answer
from tests.server.enterprises import Site, create, until


def told(findings: list[Finding], gravity: Gravity) -> list[str]:
    return [f"{f.check}: {f.what}" for f in findings if f.gravity is gravity]


def errors(home: Path) -> list[str]:
    findings = examine(home / "mqis.toml")
    assert all(f.todo for f in findings if f.gravity in (Gravity.WARNING, Gravity.ERROR))
    return told(findings, Gravity.ERROR)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = Site(tmp_path).found("pec1")
    accounts = AccountsFile(made / "accounts.toml")
    accounts.add("alice", "secret", groups=[ADMINISTRATORS])
    return made


# --- servers that are well ------------------------------------------------------------------------


def test_two_servers_that_run(tmp_path: Path) -> None:
    """Seen from the PSC: its ports, both keys, a session, the directory, the clock."""

    async def run() -> None:
        site = Site(tmp_path)
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2") as psc:
                await create(pec, "pec1\\q", "x")
                await until(psc, "pec1\\q", "x")
                known = {"pec1": pec.ready.port}
                file = site.homes["psc2"] / "mqis.toml"
                found = await asyncio.to_thread(examine, file, known)
                assert told(found, Gravity.ERROR) == []
                well = "\n".join(told(found, Gravity.OK))
                assert f"ports: TCP 127.0.0.1 {psc.ready.queue_port} (replication.port) is" in well
                assert "keys: the directory has this server's key" in well
                assert "keys: the directory has the keys of 1 other server" in well
                assert "accepts sessions of this server" in well
                assert f"the directory of pec1 answers at 127.0.0.1:{pec.ready.port}" in well
                assert re.search(
                    r"clock: the clock of pec1 is [0-9.]+ ms (ahead of|behind) this one", well
                )
                # A stranger is refused, and whoever answers for another is found out.
                me = who(site, "psc2")
                stranger = Server("x", Guid(b"x" * 16), me.site, Role.PSC, "pec1")
                port = pec.ready.queue_port or 0
                other = KnownNeighbour("pec1", who(site, "pec1").id, "pec")
                refused = await peer_checks._session(stranger, other, "127.0.0.1", port)
                assert "refuses a session" in refused.what
                wrong = KnownNeighbour("pec1", Guid(b"y" * 16), "pec")
                assert "session" in (await peer_checks._session(me, wrong, "127.0.0.1", port)).what
            apart = await clock_difference_s("127.0.0.1", pec.ready.port, dscomm.SYNTAX, 3)
            assert apart is not None
            assert abs(apart) < 5

    asyncio.run(run())


def who(site: Site, name: str) -> Server:
    with closing(open_store(str(site.homes[name] / "d.db"))) as store, store.read() as view:
        return identify(load(site.homes[name] / "mqis.toml"), view)


def test_a_server_that_does_not_run_has_free_ports(home: Path) -> None:
    findings = examine(home / "mqis.toml")
    assert told(findings, Gravity.ERROR) == []
    assert sum("is free" in text for text in told(findings, Gravity.OK)) == 2


# --- and not --------------------------------------------------------------------------------------


def edit(home: Path, old: str, new: str) -> None:
    file = home / "mqis.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def _damage(home: Path) -> None:
    with closing(sqlite3.connect(home / "d.db")) as database, database:
        database.execute("UPDATE objects SET seq = x'00'")


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda h: edit(h, "[rpc]", "[rpc]\nprot = 1"), "rpc.prot: no such key; did you mean"),
        (lambda h: (h / "accounts.toml").chmod(0o644), "others may use them"),
        (lambda h: (h / "signing.key").chmod(0o644), "others may read this private key"),
        (lambda h: (h / "signing.key").write_text("x"), "is no private key"),
        (lambda h: (h / "d.db").chmod(0o666), "others can write the directory"),
        (lambda h: (h / "d.db").unlink(), "there is no store"),
        (_damage, "store: damaged: "),
        (lambda h: os.utime(h / "d.db", (4e9, 4e9)), "clock: "),
        (lambda h: edit(h, 'listen = "127.0.0.1"', 'listen = "192.0.2.1"'), "cannot listen"),
        (
            lambda h: edit(h, 'listen = "127.0.0.1"', 'listen = "0.0.0.0"'),
            "anyone who can reach 0.0.0.0 may do everything",
        ),
        (lambda h: edit(h, 'role = "pec"', 'role = "psc"'), "is psc, but the PEC"),
    ],
)
def test_what_is_wrong_is_found(home: Path, harm: Callable[[Path], object], expected: str) -> None:
    harm(home)
    assert any(expected in text for text in errors(home)), errors(home)


@pytest.mark.parametrize(
    ("acting_as", "keytab", "gravity", "expected"),
    [
        ("server", "", Gravity.WARNING, ", so no user can log on"),
        ("server", "k", Gravity.NOTE, ": callers log on by Kerberos alone, and have no SID"),
        ("caller", "k", Gravity.OK, ": callers log on by Kerberos alone"),
    ],
)
def test_a_server_with_a_keytab_needs_no_accounts(
    home: Path, acting_as: str, keytab: str, gravity: Gravity, expected: str
) -> None:
    (home / "accounts.toml").unlink()
    edit(home, 'acting_as = "server"', f'acting_as = "{acting_as}"')
    edit(home, '# mqis[kerberos].\nkeytab = ""', f'keytab = "{keytab}"')
    found = told(examine(home / "mqis.toml"), gravity)
    assert f"configuration: {home / 'accounts.toml'}: no such file{expected}" in found


def test_an_old_store_is_not_changed(home: Path) -> None:
    with closing(sqlite3.connect(home / "d.db")) as database:
        database.execute("PRAGMA user_version=1")
    found = told(examine(home / "mqis.toml"), Gravity.WARNING)
    assert any("schema version 1, this mqis has" in text for text in found)
    with closing(sqlite3.connect(home / "d.db")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_port_of_somebody_else(home: Path) -> None:
    port = load(home / "mqis.toml").replication.port
    with socket.create_server(("127.0.0.1", port)):
        (found,) = errors(home)
    assert f"{port} (replication.port) is in use, and this server is not running" in found


def test_servers_that_cannot_be_reached_and_keys_that_are_missing(tmp_path: Path) -> None:
    async def run() -> Site:
        site = Site(tmp_path)
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
        return site

    site = asyncio.run(run())
    found = errors(site.homes["pec1"])
    assert any("psc2 (psc) at 127.0.0.1" in text and "be reached" in text for text in found)
    edit(site.homes["pec1"], '"psc2" = "127.0.0.1', '"psc9" = "127.0.0.1')
    found = errors(site.homes["pec1"])
    assert any("psc2 has no address" in text for text in found)
    (site.homes["pec1"] / "signing.key").unlink()
    (site.homes["pec1"] / "signing.key").write_bytes(
        (site.homes["psc2"] / "signing.key").read_bytes()
    )
    (site.homes["pec1"] / "signing.key").chmod(0o600)
    assert any("another key of this server" in text for text in errors(site.homes["pec1"]))


def test_a_clock_that_is_far_off_is_an_error() -> None:
    other = KnownNeighbour("pec1", Guid(b"y" * 16), "pec")
    levels = [peer_checks._clock(other, apart).gravity for apart in (0.1, -20.0, 400.0)]
    assert levels == [Gravity.OK, Gravity.WARNING, Gravity.ERROR]


# --- a run directory ------------------------------------------------------------------------------


def test_a_run_directory_tells_who_is_behind(tmp_path: Path) -> None:
    async def run() -> Site:
        site = Site(tmp_path)
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2"):
                pass
            for number in range(3):
                await create(pec, f"pec1\\q{number}", "")
        return site

    site = asyncio.run(run())
    places = [
        NodePlace(
            name, "psc", "x", "127.0.0.1", site.rpc_ports[name], 0, site.ports[name], 0, 0,
            str(home), str(home / "mqis.toml"), str(home / "d.db"), "", ""
        )
        for name, home in site.homes.items()
    ]  # fmt: skip
    save_nodes(tmp_path, Nodes("Acme", tuple(places)))
    reports = examine_run(tmp_path)
    assert [report.server for report in reports] == ["pec1", "psc2", ""]
    assert [report.server for report in examine_run(tmp_path, ["PSC2"])] == ["psc2"]
    late = told(list(reports[-1].findings), Gravity.WARNING)
    assert "health: psc2: 3 changes behind" in late
    down = told(list(reports[-1].findings), Gravity.ERROR)
    assert down == ["health: pec1, psc2 do not answer"]


def test_the_verdict_of_a_running_server(home: Path) -> None:
    """As its /health has it: the doctor must not say that all is well beside a red /health."""
    answer = monitor_answer("pec1", 5, authority=True)
    config = load(home / "mqis.toml")
    assert check_server(config) == [], "it has no monitoring"
    with closing_monitors() as monitors:
        values = {"monitoring": {"enabled": True, "port": monitors.add(answer)}}
        config = override(config, values, "test")
        (text,) = told(check_server(config), Gravity.OK)
        assert text == (
            "health: pec1 speaks for itself: no fault is known here; 'mqis status' compares it "
            "with the 2 servers that it replicates with"
        )
        answer["problems"] = ["the journal is not written; the log says why"]
        (finding,) = check_server(config)
    assert (finding.gravity, finding.what) == (
        Gravity.ERROR,
        "pec1: the journal is not written; the log says why",
    )
    assert check_server(config) == [], "whether it runs is another finding"
