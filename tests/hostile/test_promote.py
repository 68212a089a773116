"""``mqis promote`` in the wrong hands, or with somebody in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest

from mqis.admin.promote.rebuilding import RebuildRequest, plan_rebuild
from mqis.admin.promote.takeover import plan_takeover
from mqis.client.directory import DirectoryClient
from mqis.client.remote import Remote
from mqis.client.servers import ServerAddress
from mqis.config.file import read
from mqis.config.sections import ConfiguredRole
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials as Account
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.admin.test_promote import Threaded, psc_of
from tests.server.enterprises import Site, client_of, until
from tests.waiting import in_time

ADMINISTRATORS: dict[str, object] = {"administrators": ["S-1-5-32-544"], "domain": "LAB"}
PASSWORD = "without any rights"


async def _build(directory: Path) -> Site:
    site = Site(directory, signing="require")
    site.found("pec1")
    async with site.serving("pec1") as pec:
        await site.join(pec, "psc2", "psc", "Leiden")
        async with site.serving("psc2") as psc:
            await site.join(pec, "bsc3", "bsc", "Leiden", psc="psc2")
            async with site.serving("bsc3") as backup:
                async with client_of(psc) as client:
                    label = "there"
                    await client.create(ObjectType.QUEUE, "psc2\\q", props({PropId.Q_LABEL: label}))
                await until(backup, "psc2\\q", "there")
    site.write("pec1", server={"role": "pec", "site": "Delft"}, security=ADMINISTRATORS)
    AccountsFile(site.homes["pec1"] / "accounts.toml").add("bob", PASSWORD, domain="LAB")
    return site


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return asyncio.run(in_time(_build(tmp_path_factory.mktemp("enterprise"))))


@pytest.fixture
def site(built: Site, tmp_path: Path) -> Site:
    """A PEC that knows its administrators; of Leiden the PSC is gone, and a backup is left."""
    mine = copy(built)
    mine.homes = {name: copytree(home, tmp_path / name) for name, home in built.homes.items()}
    return mine


@pytest.fixture
def backup(site: Site) -> Path:
    return site.homes["bsc3"] / "mqis.toml"


async def with_remote(pec: DirectoryServer, work: Callable[[Remote], object]) -> object:
    """Runs ``work`` as a command does that logs on as Bob, who has an account and no rights."""
    initiator = PyspnegoInitiator(Account("bob", "LAB", PASSWORD))
    credentials = Credentials(initiator, AuthType.NTLM, AuthLevel.PRIVACY, "host/pec1")
    address = ServerAddress("127.0.0.1", pec.ready.port)
    async with await DirectoryClient.connect([address], credentials=credentials) as client:
        remote = Remote(Threaded(asyncio.get_running_loop()), client)  # type: ignore[arg-type]
        return await asyncio.to_thread(work, remote)


@pytest.mark.req("SEC-10-06")
def test_nobody_takes_a_role_without_the_right_to_give_it(site: Site, backup: Path) -> None:
    before = backup.read_bytes()

    def take(remote: Remote) -> None:
        plan_takeover(backup, remote).carry_out(remote)

    async def attack() -> None:
        async with site.serving("pec1") as pec:
            with pytest.raises(DirectoryError) as refused:
                await with_remote(pec, take)
            assert refused.value.hresult == HResult.MQ_ERROR_ACCESS_DENIED
            assert await psc_of(pec, "Leiden") == "psc2"

    asyncio.run(in_time(attack()))
    assert backup.read_bytes() == before


@dataclass(frozen=True)
class _Found:
    id: Guid
    values: Mapping[PropId, PropVariant | None]


class Impostor:
    """Answers as a PEC would, and does nothing."""

    def __init__(self, psc: str) -> None:
        self.psc = psc
        self.changes = 0

    def get(self, _kind: ObjectType, _name: str, _chosen: Sequence[PropId]) -> _Found:
        return _Found(Guid.NULL, props({PropId.S_PSC: self.psc}))

    def set(self, *_given: object) -> None:
        self.changes += 1

    def set_security(self, *_given: object) -> None:
        self.changes += 1

    def security(self, *_given: object) -> bytes:
        return b""

    def id_of(self, *_given: object) -> Guid | None:
        return None

    def create(self, *_given: object) -> Guid | None:
        return None


@pytest.mark.req("SEC-10-06")
def test_a_server_that_an_impostor_promoted_decides_nothing(site: Site, backup: Path) -> None:
    """The PEC names authorities, by what it replicates; a configuration does not."""
    impostor = Impostor("nobody-there")
    plan_takeover(backup, impostor, force=True).carry_out(impostor)
    assert impostor.changes
    assert read(backup).server.role is ConfiguredRole.PSC

    async def attack() -> None:
        async with site.serving("pec1") as pec, site.serving("bsc3") as server:
            assert server.ready.partitions == ()
            assert await psc_of(pec, "Leiden") == "psc2"

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-10-06")
def test_a_plan_is_not_carried_out_against_somebody_else(backup: Path) -> None:
    """Another backup was promoted while the plan was looked at."""
    before = backup.read_bytes()
    directory = Impostor("psc2")
    takeover = plan_takeover(backup, directory)
    directory.psc = "bsc4"
    with pytest.raises(MqisError, match="is bsc4 by now, no longer psc2"):
        takeover.carry_out(directory)
    assert directory.changes == 0
    assert backup.read_bytes() == before


@pytest.mark.req("SEC-10-06")
def test_a_rebuilt_authority_still_believes_signatures_alone(backup: Path, tmp_path: Path) -> None:
    """It began with signatures off, and was to be believed unsigned: whoever was first was it."""
    wish = RebuildRequest("psc2", tmp_path / "new")
    plan_rebuild(backup, wish).carry_out()
    made = read(wish.to / "mqis.toml")
    assert (made.server.role, made.replication.signing.value) == (ConfiguredRole.PSC, "require")
    assert (wish.to / "seed.txt").read_text().startswith(f"psc2 {made.replication.id} ")
    for path in wish.to.iterdir():
        assert path.is_dir() or not path.stat().st_mode & 0o077, path


@pytest.mark.req("SEC-10-06")
def test_a_link_that_waits_for_the_new_configuration_is_not_followed(
    backup: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (backup.parent / ".mqis.toml.new").symlink_to(victim)
    directory = Impostor("psc2")
    plan_takeover(backup, directory).carry_out(directory)
    assert victim.read_text() == "untouched"
    assert read(backup).server.role is ConfiguredRole.PSC
    assert not backup.is_symlink()
