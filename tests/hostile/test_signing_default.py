"""Nobody speaks as a server by asking: signatures are required unless somebody says otherwise."""

from __future__ import annotations

import asyncio
import logging
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.file import load, override, read
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.enterprise.first_server import found_pec
from mqis.enterprise.plan import parse_plan
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.server.directory_server import DirectoryServer
from mqis.server.replication import check_signing
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.cli.commands import process
from tests.server.enterprises import Site

REQUIRE = SigningPolicy.REQUIRE
WARNING = "unsigned messages are accepted"
PLAN = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[server]]
name = "pec1"
site = "Delft"
role = "pec"
[[account]]
name = "root"
administrator = true
"""


# --- what is written ------------------------------------------------------------------------------


def tells_key(store: Path) -> bool:
    """Returns whether the new directory has the public key of its first server."""
    with closing(open_store(str(store))) as opened, opened.read() as view:
        machine = view.find(ObjectType.MACHINE, "pec1")
        return machine is not None and bool(machine.value(PropId.QM_SIGN_PKS))


@pytest.mark.req("SEC-3-01")
def test_a_new_enterprise_requires_signatures(tmp_path: Path) -> None:
    new = ("init", "--enterprise", "Acme", "--site", "Delft", "--name", "pec1")
    done = process(*new, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'signing = "require"' in (tmp_path / "mqis.toml").read_text()
    assert read(tmp_path / "mqis.toml").replication.signing is REQUIRE
    assert tells_key(tmp_path / "mqis.db")


@pytest.mark.req("SEC-3-01")
def test_an_enterprise_from_a_plan_requires_signatures(tmp_path: Path) -> None:
    home = tmp_path / "pec1"
    place = NodePlace(
        *("pec1", "pec", "Delft", "127.0.0.1", 2879, 135, 1801, 1801, 9364),
        *(str(home), str(home / "mqis.toml"), str(home / "directory.db")),
        *(str(home / "journal"), str(home / "log")),
    )
    found_pec(parse_plan(tomllib.loads(PLAN)), Nodes("Acme", (place,)))
    assert 'signing = "require"' in (home / "mqis.toml").read_text()
    assert tells_key(home / "directory.db")


@pytest.mark.req("SEC-3-01")
def test_a_configuration_that_says_nothing_requires_signatures(tmp_path: Path) -> None:
    path = tmp_path / "mqis.toml"
    path.write_text('[server]\nrole = "pec"\n', encoding="utf-8")
    assert load(path).replication.signing is REQUIRE


# --- less than that -------------------------------------------------------------------------------


@pytest.mark.req("SEC-3-02")
@pytest.mark.parametrize("signing", ["none", "accept"])
def test_a_server_that_requires_less_warns_at_every_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, signing: str
) -> None:
    async def run() -> None:
        site = Site(tmp_path, signing=signing)
        site.found("pec1")
        for start in (1, 2):
            async with site.serving("pec1"):
                warned = [m for m in caplog.messages if m.startswith(WARNING)]
                assert len(warned) == start
                assert 'set replication.signing = "require"' in warned[-1]

    caplog.set_level(logging.WARNING)
    asyncio.run(run())


def test_a_server_that_requires_signatures_does_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        site = Site(tmp_path)
        site.found("pec1")
        async with site.serving("pec1"):
            pass

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
    assert WARNING not in caplog.text


@pytest.mark.req("SEC-3-03")
@pytest.mark.parametrize("signing", ["none", "accept"])
@pytest.mark.parametrize(
    "where", [{"rpc": "0.0.0.0"}, {"replication": "0.0.0.0"}, {"replication": "::"}]
)
def test_a_server_that_requires_less_does_not_listen_beyond_loopback(
    tmp_path: Path, signing: str, where: dict[str, str]
) -> None:
    async def run() -> None:
        site = Site(tmp_path, signing=signing)
        site.found("pec1")
        listens: dict[str, dict[str, object]] = {s: {"listen": at} for s, at in where.items()}
        site.write("pec1", server={"role": "pec", "site": "Delft"}, **listens)
        config = load(site.homes["pec1"] / "mqis.toml")
        with pytest.raises(MqisError) as refused:
            async with DirectoryServer(config, grace_s=1):
                pass
        text = str(refused.value)
        assert "could act as any server of the enterprise" in text
        assert 'set replication.signing = "require"' in text
        assert "replication.unsigned_beyond_loopback = true" in text

    asyncio.run(run())


@pytest.mark.req("SEC-3-03")
def test_unless_the_configuration_says_so_in_words(caplog: pytest.LogCaptureFixture) -> None:
    said = {"listen": "0.0.0.0", "signing": "accept", "unsigned_beyond_loopback": True}
    caplog.set_level(logging.WARNING)
    check_signing(override(Config(), {"replication": said}, "test"))
    assert WARNING in caplog.text
    del said["unsigned_beyond_loopback"]
    with pytest.raises(MqisError, match="could act as any server"):
        check_signing(override(Config(), {"replication": said}, "test"))
    said["signing"] = "require"
    check_signing(override(Config(), {"replication": said}, "test"))
