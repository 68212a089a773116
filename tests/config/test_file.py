"""The configuration: what a file may say, and what is said of one that is wrong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from mqis.config.errors import ConfigError
from mqis.config.file import default_toml, load, override, reread
from mqis.config.monitoring import MonitoringSection
from mqis.config.replication import ReplicationSection
from mqis.config.sections import (
    Config,
    ConfiguredRole,
    DiscoverySection,
    EnterpriseSection,
    Gss,
    HostsSection,
    LogFormat,
    LogLevel,
    LogSection,
    RpcSection,
    SecuritySection,
    ServerSection,
    StoreSection,
)
from mqis.protocol.directory.descriptors import MachinePolicy
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.wire.guid import Guid
from mqis.wire.security.sid import ADMINISTRATORS, Sid


def written(directory: Path, text: str) -> Path:
    path = directory / "mqis.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[server]\nname = "ams-dir1"\nrole = "pec"\nsite = "Amsterdam"\n'
        'global_catalogs = ["corp.test gc1.corp.test gc2.corp.test"]\n'
        "unicode_names = true\n"
        '[store]\nurl = "postgresql://mqis@db/mqis"\nremembered = 99\n'
        '[enterprise]\nname = "Meridian"\n'
        '[rpc]\nlisten = "::1"\nport = 2879\nmapper = false\nmapper_port = 1135\n'
        'max_connections = 5\n[security]\naccounts = "a.toml"\ndomain = "LAB"\n'
        'administrators = ["S-1-5-21-1-2-3-500", "S-1-5-32-544"]\ngss = "none"\n'
        'keytab = "/etc/krb5.keytab"\nanonymous = false\nchallenge_machines = true\n'
        'machine_policy = "owner"\nmax_changes_per_hour = 70\nmax_written_mb_per_hour = 8\n'
        "logon_lifetime_s = 3600\n"
        '[discovery]\nenabled = true\nlisten = "0.0.0.0"\n'
        'port = 1802\nnetworks = ["LAN"]\nown_enterprise_only = true\nrate = 5\nburst = 6\n'
        '[replication]\nlisten = "10.0.0.1"\nport = 1802\nping = true\nping_port = 3528\n'
        'pec = "pec1"\npsc = "psc1"\nid = "00000000-0000-0000-0000-000000000001"\n'
        'site_id = "00000000-0000-0000-0000-000000000002"\nseeds = ["pec1 x"]\n'
        'signing = "require"\nkey = "k.pem"\njournal = "journal"\n'
        "snapshot_records = 2000\nkeep_snapshots = 7\narchive = 'archive'\n"
        "seal_hours = 8\nnotify = false\n"
        "gather_ms = 1\nheartbeat_s = 2\nretry_s = 3\nreply_wait_s = 4\n"
        "recovery_wait_s = 5\nconnect_retry_s = 6\nroute = false\nforwarded_powers = true\n"
        "unsigned_beyond_loopback = true\n"
        '[hosts]\nber-dir1 = "10.0.2.1:1802"\nx = "[::1]:5"\n'
        '[monitoring]\nenabled = true\nlisten = "0.0.0.0"\nport = 9365\n'
        'peers = ["http://10.0.2.1:9364"]\nverify_s = 60\n'
        '[log]\nlevel = "debug"\nformat = "json"\n',
    )
    assert load(path) == Config(
        ServerSection(
            "ams-dir1",
            ConfiguredRole.PEC,
            "Amsterdam",
            ("corp.test gc1.corp.test gc2.corp.test",),
            True,
        ),
        StoreSection("postgresql://mqis@db/mqis", 99),
        EnterpriseSection("Meridian"),
        RpcSection("::1", 2879, False, 1135, 5),
        SecuritySection(
            str(tmp_path / "a.toml"),
            "LAB",
            (Sid.parse("S-1-5-21-1-2-3-500"), ADMINISTRATORS),
            Gss.NONE,
            "/etc/krb5.keytab",
            False,
            True,
            MachinePolicy.OWNER,
            max_changes_per_hour=70,
            max_written_mb_per_hour=8,
            logon_lifetime_s=3600,
        ),
        DiscoverySection(True, "0.0.0.0", 1802, ("LAN",), True, 5, 6),
        ReplicationSection(
            "10.0.0.1",
            1802,
            True,
            3528,
            "pec1",
            "psc1",
            Guid(bytes(15) + b"\1"),
            Guid(bytes(15) + b"\2"),
            ("pec1 x",),
            SigningPolicy.REQUIRE,
            True,
            str(tmp_path / "k.pem"),
            str(tmp_path / "journal"),
            2000,
            7,
            str(tmp_path / "archive"),
            8,
            False,
            1,
            2,
            3,
            4,
            5,
            6,
            False,
            True,
        ),
        HostsSection((("ber-dir1", "10.0.2.1:1802"), ("x", "[::1]:5"))),
        LogSection(LogLevel.DEBUG, LogFormat.JSON),
        MonitoringSection(True, "0.0.0.0", 9365, ("http://10.0.2.1:9364",), 60),
    )


def test_an_empty_file_has_the_defaults(tmp_path: Path) -> None:
    config = load(written(tmp_path, ""))
    assert config.server.role is ConfiguredRole.NONE
    assert config.store.url == f"sqlite:{tmp_path / 'mqis.db'}"


def test_the_store_lies_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    written(tmp_path / "etc", '[store]\nurl = "sqlite:data/d.db"\n')
    monkeypatch.chdir(tmp_path)
    assert load(Path("etc/mqis.toml")).store.url == f"sqlite:{tmp_path}/etc/data/d.db"
    written(tmp_path / "etc", '[store]\nurl = "sqlite:/srv/d.db"\n')
    assert load(Path("etc/mqis.toml")).store.url == "sqlite:/srv/d.db"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[server]\nrole = "boss"\n', "server.role: 'boss' is not one of pec, psc, bsc, none"),
        ("[server]\nrole = 5\n", "server.role: 5 is not one of pec, psc, bsc, none"),
        ("[server]\nname = 5\n", "server.name: must be text in quotes, not 5"),
        ("[server]\nnmae = 'x'\n", "server.nmae: no such key; did you mean server.name?"),
        ("[server]\nxyzzy = 1\n", "server.xyzzy: no such key; known: name, role, site"),
        ("[sorte]\n", "sorte: no such key; did you mean store?"),
        ("store = 'x'\n", "store: this is a section; write [store]"),
        ("[store]\nurl = 'mysql://x'\n", "store.url: 'mysql://x' names no store"),
        ("[store]\nurl = ''\n", "store.url: '' names no store"),
        ("[rpc]\nlisten = 'localhost'\n", "rpc.listen: 'localhost' is not an IP address"),
        ("[rpc]\nport = 65536\n", "rpc.port: must be a number from 0 to 65535, not 65536"),
        ("[rpc]\nport = true\n", "rpc.port: must be a number from 0 to 65535, not True"),
        ("[rpc]\nmapper = 1\n", "rpc.mapper: must be true or false, not 1"),
        ("[rpc]\nmax_connections = 0\n", "rpc.max_connections: must be a number from 1 to"),
        ("[security]\ngss = 'pct'\n", "security.gss: 'pct' is not one of negotiate, none"),
        (
            "[security]\nmax_changes_per_hour = 0\n",
            "security.max_changes_per_hour: must be a number from 1 to 1000000000",
        ),
        (
            "[security]\nmax_written_mb_per_hour = 1000001\n",
            "security.max_written_mb_per_hour: must be a number from 1 to 1000000",
        ),
        ("[security]\nadministrators = 'x'\n", "security.administrators: must be a list"),
        ("[security]\nadministrators = ['x']\n", "security.administrators: 'x' is not"),
        (
            "[security]\nmachine_policy = 1\n",
            "security.machine_policy: 1 is not one of everyone, o",
        ),
        (
            "[security]\nlogon_lifetime_s = 59\n",
            "security.logon_lifetime_s: must be a number from 60 to 2592000, not 59",
        ),
        ("[discovery]\nlisten = '::1'\n", "discovery.listen: '::1' is not an IPv4 address"),
        ("[discovery]\nnetworks = 'LAN'\n", "discovery.networks: must be a list"),
        (
            "[monitoring]\npeers = ['https://a:1']\n",
            'monitoring.peers: must be "http://HOST:PORT", not',
        ),
        ("[monitoring]\npeers = ['http://a/x']\n", 'monitoring.peers: must be "http://HOST:PORT"'),
        ("[monitoring]\npeers = ['http://a:x']\n", "monitoring.peers: Port could not be cast"),
        ("[monitoring]\nverify_s = -1\n", "monitoring.verify_s: must be a number from 0 to"),
        (
            "[server]\nglobal_catalogs = ['corp']\n",
            'server.global_catalogs: must be "DOMAIN SERVER',
        ),
        ("[server]\nglobal_catalogs = ['corp a,b']\n", "server.global_catalogs: server name"),
        ("[discovery]\nrate = 0\n", "discovery.rate: must be a number from 1 to"),
        ("[replication]\nlisten = 'x'\n", "replication.listen: 'x' is not an IP address"),
        ("[replication]\nid = 'x'\n", "replication.id: 'x' is not a GUID"),
        (
            "[replication]\nsigning = 'x'\n",
            "replication.signing: 'x' is not one of none, accept, r",
        ),
        ("[replication]\nretry_s = 0\n", "replication.retry_s: must be a number from 1 to 86400"),
        ("[hosts]\na = '1:2x'\n", "hosts: a: '1:2x' is not an address: write 10.0.0.2 or 10"),
        ("[hosts]\na = '1:70000'\n", "hosts: a: must be a number from 0 to 65535"),
        ("hosts = 1\n", "hosts: this is a section; write [hosts]"),
        ("[log]\nlevel = 'loud'\n", "log.level: 'loud' is not one of debug, info, warning, error"),
        (
            "[server\n",
            "this file is not valid TOML: Expected ']' at the end of a table declaration",
        ),
    ],
)
def test_an_error_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read: No such file"):
        load(tmp_path / "absent.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"mqis\.toml: this file is not valid TOML"):
        load(path)


def test_the_file_that_init_writes_says_the_defaults(tmp_path: Path) -> None:
    config = load(written(tmp_path, default_toml()))
    url, accounts = f"sqlite:{tmp_path / 'mqis.db'}", str(tmp_path / "accounts.toml")
    key = str(tmp_path / "signing.key")
    here = {
        "store": {"url": url},
        "security": {"accounts": accounts},
        "replication": {"key": key},
    }
    assert config == override(Config(), here, "here")


def test_the_file_explains_every_key() -> None:
    lines = default_toml().splitlines()
    for section in fields(Config):
        if section.name == "hosts":  # whose keys are names of machines
            continue
        for key in fields(type(section.default)):  # type: ignore[arg-type]
            at = next(i for i, line in enumerate(lines) if line.startswith(f"{key.name} = "))
            assert lines[at - 1].startswith("# "), key.name
    assert all(len(line) <= 100 for line in lines)


def test_the_file_can_be_written_with_other_values(tmp_path: Path) -> None:
    config = Config(
        ServerSection('a"b\\c\td', ConfiguredRole.BSC, "Zürich"),
        StoreSection("memory:"),
        EnterpriseSection("E"),
        RpcSection(port=5, mapper=False),
        SecuritySection("/a", administrators=(), machine_policy=MachinePolicy.OWNER),
        DiscoverySection(enabled=True, networks=("LAN", "WAN")),
        ReplicationSection(id=Guid(bytes(15) + b"\1"), key="/k", seeds=("a b",)),
        HostsSection((("ber-dir1", "10.0.2.1"), ("b.c", "10.0.2.1:5"))),
        LogSection(format=LogFormat.JSON),
    )
    assert load(written(tmp_path, default_toml(config))) == config


# --- a running server -----------------------------------------------------------------------------


def test_values_of_the_command_line_are_checked_as_those_of_a_file() -> None:
    config = override(Config(), {"rpc": {"port": 7}, "log": {"level": "error"}}, "command line")
    assert (config.rpc.port, config.log.level) == (7, LogLevel.ERROR)
    assert config.rpc.mapper_port == Config().rpc.mapper_port
    with pytest.raises(ConfigError, match=r"^command line: rpc\.port: must be a number"):
        override(Config(), {"rpc": {"port": -1}}, "command line")


def test_a_reread_takes_what_it_may_and_names_the_rest() -> None:
    old = Config()
    new = override(
        old,
        {
            "rpc": {"port": 7, "max_connections": 3},
            "security": {"administrators": [], "anonymous": False, "gss": "none"},
            "replication": {"heartbeat_s": 9, "port": 9},
            "hosts": {"ber-dir1": "10.0.0.2"},
            "log": {"level": "debug"},
        },
        "new",
    )
    result = reread(old, new)
    live = ["security.administrators", "security.anonymous"]
    assert result.applied == [*live, "replication.heartbeat_s", "hosts", "log.level"]
    assert result.waiting == ["rpc.port", "rpc.max_connections", "security.gss", "replication.port"]
    assert result.config.hosts.entries == (("ber-dir1", "10.0.0.2"),)
    assert result.config.security.administrators == ()
    assert result.config.log.level is LogLevel.DEBUG
    assert result.config.rpc == old.rpc
    assert result.config.security.gss is Gss.NEGOTIATE
    assert reread(old, old).applied == []


def test_the_file_says_what_is_reread() -> None:
    lines = default_toml().splitlines()
    assert lines[lines.index('level = "info"') - 1].startswith("# [live] ")
    assert not any("[live]" in line for line in lines[: lines.index("[security]")][3:])


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9364"),
        ("0.0.0.0", "http://127.0.0.1:9364"),
        ("::", "http://[::1]:9364"),
        ("fd00::1", "http://[fd00::1]:9364"),
    ],
)
def test_where_a_program_here_reaches_the_monitoring(listen: str, url: str) -> None:
    assert MonitoringSection(enabled=True, listen=listen).local_url == url
    assert MonitoringSection(enabled=False, listen=listen).local_url == ""
    assert MonitoringSection(enabled=True, listen=listen, port=0).local_url == ""
