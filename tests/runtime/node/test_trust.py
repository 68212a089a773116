"""Trust: which peers may connect, and whose messages are accepted."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from hashlib import md5
from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.queueing.events import SessionClosed
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.queueing.signing import SigningPolicy, Verdict
from mqis.protocol.security.rsa import sign_md5
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Members, Seed
from mqis.runtime.node.signer import MachineKey, MachineSigner
from mqis.runtime.queueing.queueing_endpoint import QueueingEndpoint
from mqis.storage.memory_store import MemoryStore
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import PublicKey, PublicKeys, RsaPublicKey, key_list
from mqis.wire.mqds.propid import PropId
from tests.runtime.node.loopback import (
    MACHINE,
    QUEUE,
    SITE,
    Host,
    Net,
    Running,
    machine_key,
    running,
)
from tests.waiting import until
from tests.wire.mqds.vectors import MODULUS, PRIVATE_EXPONENT

REQUIRE, ACCEPT = SigningPolicy.REQUIRE, SigningPolicy.ACCEPT


async def joined(net: Net, pec: Running) -> Host:
    host = net.psc("psc2", pec.host)
    await pec.admit(net, host, "Leiden")
    return host


@pytest.mark.parametrize("policy", list(SigningPolicy))
def test_servers_that_sign_work_under_every_policy(policy: SigningPolicy) -> None:
    async def run() -> None:
        net = Net(policy)
        async with running(net, net.pec("pec1", "Delft")) as pec:
            async with running(net, await joined(net, pec)) as psc:
                await psc.serves("psc2\\q")
                await pec.sees(QUEUE, "psc2\\q")
            assert pec.driver.node.queue.statistics.refused == 0

    asyncio.run(run())


@pytest.mark.req("MQDSRP-5.1-01")
@pytest.mark.parametrize("how", ["unsigned", "another key"])
def test_a_peer_that_must_sign_and_does_not_is_dropped_and_counted(how: str) -> None:
    async def run() -> None:
        net = Net(REQUIRE)
        async with running(net, net.pec("pec1", "Delft")) as pec:
            host = await joined(net, pec)
            if how == "unsigned":
                host.policy = ACCEPT
                host.signs = False
            else:
                machine = pec.host.find(MACHINE, "psc2")
                assert machine is not None
                other = key_list(machine_key("somebody").public)
                with pec.host.store.write() as tx:
                    tx.update(
                        machine,
                        replace(
                            machine,
                            properties=props({**machine.properties, PropId.QM_SIGN_PKS: other}),
                        ),
                    )
                pec.driver.members.changed(frozenset({MACHINE}))
            async with running(net, host) as psc:
                queue = pec.driver.node.queue
                await until(lambda: queue.statistics.refused > 0, "a refusal")
                assert queue.statistics.delivered == 0
                assert psc.host.find(SITE, "Delft") is None, "it was answered"

    asyncio.run(run())


def test_an_unsigned_message_is_still_taken_where_signing_is_not_required() -> None:
    async def run() -> None:
        net = Net(ACCEPT)
        async with running(net, net.pec("pec1", "Delft")) as pec:
            host = await joined(net, pec)
            host.signs = False
            async with running(net, host) as psc:
                await psc.sees(SITE, "Delft")

    asyncio.run(run())


def test_a_stranger_gets_no_session() -> None:
    async def run() -> None:
        net = Net()
        async with running(net, net.pec("pec1", "Delft")) as pec:
            manager = QueueingMachine(SystemEntropy().guid(), "psc2", MessageIdCounter(0))
            async with QueueingEndpoint(manager, net.resolve) as stranger:
                stranger.send("pec1", QueuedMessage(b"let me in"))
                event = await stranger.next_event()
            assert isinstance(event, SessionClosed)
            statistics = pec.driver.node.queue.statistics
            assert (statistics.sessions, statistics.received) == (0, 0)
            closed = [o for o in pec.host.outcomes if isinstance(o, SessionClosed)]
            assert "not among the peers" in closed[0].reason

    asyncio.run(run())


class TestMembers:
    def host(self) -> tuple[Net, Host]:
        net = Net(ACCEPT)
        return net, net.pec("pec1", "Delft")

    def add(self, net: Net, host: Host, bits: int) -> Guid:
        other = net.psc("m1", host)
        with host.store.write() as tx:
            properties = net.machine(replace(other.me, site=host.me.site), ServiceBits(bits))
            DirectoryEvents(tx, 0, SystemEntropy()).create_directory_object(MACHINE, properties)
        return other.me.id

    @pytest.mark.parametrize(
        ("bits", "may"),
        [
            (0, False),
            (ServiceBits.ROUTING, False),
            (ServiceBits.BSC, True),
            (ServiceBits.PSC, True),
        ],
    )
    def test_servers_of_the_directory_may_connect(self, bits: int, may: bool) -> None:
        net, host = self.host()
        id_ = self.add(net, host, bits)
        members = Members(host.store, {})
        assert members.admits(id_, None, "") is may
        assert members.admits(id_, "m1", ""), "we may connect to it"
        assert members.admits(id_, "M1.example", "")
        assert not members.admits(id_, "m2", ""), "somebody else answers at that address"

    def test_seeds_are_believed_before_there_is_a_directory(self) -> None:
        id_ = SystemEntropy().guid()
        members = Members(MemoryStore(), {id_: Seed("pec1", id_, machine_key("pec1").public)})
        assert members.admits(id_, None, "")
        assert members.keys_of(id_) == (machine_key("pec1").public,)
        assert members.name_of(id_) == "pec1"
        assert not members.admits(SystemEntropy().guid(), None, "")

    def test_a_key_that_was_brought_counts_beside_that_of_the_directory(self) -> None:
        _, host = self.host()
        old, new = machine_key("pec1").public, machine_key("renewed").public
        members = Members(host.store, {host.me.id: Seed("pec1", host.me.id, new)})
        assert members.keys_of(host.me.id) == (old, new)

    def test_a_key_that_is_none_does_not_hide_the_others(self) -> None:
        net, host = self.host()
        id_, key = self.add(net, host, ServiceBits.PSC), machine_key("m1").public
        listed = PublicKeys((PublicKey("Other", 24, b"no RSA key"), PublicKey.of(key)))
        with host.store.write() as tx:
            machine = tx.get(MACHINE, id_)
            assert machine is not None
            keys = props({**machine.properties, PropId.QM_SIGN_PKS: listed.to_bytes()})
            tx.update(machine, replace(machine, properties=keys))
        assert Members(host.store, {}).keys_of(id_) == (key,)

    def test_without_a_key_nobody_is_let_in_who_has_to_sign(self) -> None:
        id_ = SystemEntropy().guid()
        seeds = {id_: Seed("pec1", id_)}
        assert Members(MemoryStore(), seeds).admits(id_, None, "")
        assert not Members(MemoryStore(), seeds, keys_required=True).admits(id_, None, "")

    def test_a_change_is_noticed(self) -> None:
        _, host = self.host()
        members = Members(host.store, {})
        assert members.name_of(host.me.id) == "pec1"
        machine = host.find(MACHINE, "pec1")
        assert machine is not None
        with host.store.write() as tx:
            renamed = props({**machine.properties, PropId.QM_PATHNAME: "pec9"})
            tx.update(machine, replace(machine, properties=renamed))
        assert members.name_of(host.me.id) == "pec1", "asked for each message, so it is kept"
        members.changed(frozenset({QUEUE}))
        assert members.name_of(host.me.id) == "pec1"
        members.changed(frozenset({MACHINE}))
        assert members.name_of(host.me.id) == "pec9"

    def test_the_key_of_a_site_counts_for_its_psc(self) -> None:
        _, host = self.host()
        site = host.find(SITE, "Delft")
        assert site is not None
        key = machine_key("the site").public
        with host.store.write() as tx:
            blob = key_list(key)
            tx.update(
                site,
                replace(site, properties=props({**site.properties, PropId.S_PSC_SIGNPK: blob})),
            )
        assert Members(host.store, {}).keys_of(host.me.id) == (machine_key("pec1").public, key)


class TestKeys:
    def test_a_key_file_is_made_for_its_owner_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "signing.key"
        key = MachineKey.open(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert key.public.bit_length >= 1024
        assert MachineKey.open(path).public == key.public

    def test_a_key_that_others_read_is_not_used(self, tmp_path: Path) -> None:
        path = tmp_path / "signing.key"
        MachineKey.open(path)
        path.chmod(0o644)
        with pytest.raises(MqisError, match="others may read this private key; chmod 600"):
            MachineKey.open(path)

    def test_what_is_no_key(self, tmp_path: Path) -> None:
        path = tmp_path / "signing.key"
        path.write_bytes(b"nonsense")
        path.chmod(0o600)
        with pytest.raises(MqisError, match="is no private key"):
            MachineKey.open(path)
        with pytest.raises(MqisError, match="cannot be read"):
            MachineKey.open(tmp_path / "none.key", create=False)

    def test_new_keys_are_not_short(self) -> None:
        with pytest.raises(ValueError, match="at least 1024"):
            MachineKey.generate(512)

    def test_old_keys_of_512_bits_are_still_verified(self) -> None:
        signature = sign_md5(MODULUS, PRIVATE_EXPONENT, md5(b"ab", usedforsecurity=False).digest())
        old = RsaPublicKey.of(MODULUS, 65_537)
        assert old.bit_length == 512
        signer = MachineSigner(machine_key("pec1"), lambda _id: (machine_key("x").public, old))
        assert signer.verify(Guid.NULL, (b"a", b"b"), signature) is Verdict.VALID
        assert signer.verify(Guid.NULL, (b"a", b"c"), signature) is Verdict.INVALID
        assert signer.verify(Guid.NULL, (b"a", b"b"), signer.sign((b"a", b"b"))) is Verdict.INVALID
        nobody = MachineSigner(machine_key("pec1"), lambda _id: ())
        assert nobody.verify(Guid.NULL, (b"a",), signature) is Verdict.UNKNOWN_SENDER
