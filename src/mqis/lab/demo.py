"""The demonstration enterprise: three sites, five directory servers, twenty machines, sixty queues.

Everything is derived from one seed and one fixed time, so every run gives the same numbers and the
same file.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, Scope
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import Store, Transaction, View
from mqis.runtime.writer import GroupCommitWriter
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.keys import PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid

ENTERPRISE_NAME = "Meridian"
#: 2024-03-01T08:00:00Z
NOW = 1_709_280_000
SEED = 1801

PEC, PSC, BSC, ROUTING = ServiceBits.PEC, ServiceBits.PSC, ServiceBits.BSC, ServiceBits.ROUTING
_SERVER, _ENTERPRISE_SERVER, _CLIENT, _FOREIGN = 0x400, 0x500, 0x300, 0x100


class SeededEntropy:
    """An implementation of ``ports.Entropy`` that gives the same identifiers every time."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = random.Random(seed)

    def guid(self) -> Guid:
        return Guid(self._random.randbytes(16))

    def modulus(self, bits: int) -> int:
        """A number of the size of an RSA modulus; its factors are unknown and not needed."""
        return self._random.getrandbits(bits) | 1 << bits - 1 | 1


@dataclass(frozen=True, slots=True)
class _Site:
    name: str
    #: (name, service bits, operating system); the first one is the authority of the site.
    machines: tuple[tuple[str, int, int], ...]


_SITES = (
    _Site(
        "Amsterdam",
        (
            ("ams-dir1", PEC | ROUTING, _ENTERPRISE_SERVER),
            ("ams-dir2", BSC, _SERVER),
            ("ams-route1", ROUTING, _SERVER),
            ("ams-app1", 0, _SERVER),
            ("ams-app2", 0, _SERVER),
            ("ams-desk1", 0, _CLIENT),
            ("ams-desk2", 0, _CLIENT),
            ("ams-desk3", 0, _CLIENT),
        ),
    ),
    _Site(
        "Berlin",
        (
            ("ber-dir1", PSC | ROUTING, _ENTERPRISE_SERVER),
            ("ber-dir2", BSC, _SERVER),
            ("ber-app1", 0, _SERVER),
            ("ber-app2", 0, _SERVER),
            ("ber-desk1", 0, _CLIENT),
            ("ber-desk2", 0, _CLIENT),
        ),
    ),
    _Site(
        "Chicago",
        (
            ("chi-dir1", PSC | ROUTING, _ENTERPRISE_SERVER),
            ("chi-app1", 0, _SERVER),
            ("chi-app2", 0, _SERVER),
            ("chi-desk1", 0, _CLIENT),
            ("chi-desk2", 0, _CLIENT),
            ("chi-host1", 0, _FOREIGN),
        ),
    ),
)
#: Amsterdam to Chicago costs 50 over the direct line and 30 over Berlin.
_LINKS = (
    ("Amsterdam", "Berlin", 10, "leased line"),
    ("Berlin", "Chicago", 20, "transatlantic fibre"),
    ("Amsterdam", "Chicago", 50, "satellite"),
)
_NETWORKS = (("Corporate IP", 1), ("Branch IP", 1), ("Mainframe", 5))
_USERS = ("anna", "bram", "chris", "dora", "emil")
#: (queue, label, special properties); every application server has all of them.
_QUEUES: tuple[tuple[str, str, dict[int, PropVariant]], ...] = (
    ("orders", "Incoming orders", props({PropId.Q_TRANSACTION: 1})),
    ("invoices", "Invoices to send", props({PropId.Q_TRANSACTION: 1})),
    ("payments", "Payments received", props({PropId.Q_PRIV_LEVEL: 2})),
    ("shipping", "Shipping notes", props({PropId.Q_JOURNAL: 1})),
    ("audit", "Audit trail", props({PropId.Q_JOURNAL: 1})),
    ("cache", "Price cache updates", props({PropId.Q_SCOPE: Scope.SITE})),
    ("errors", "Messages that failed", props({PropId.Q_AUTHENTICATE: 1})),
)
_DESK_QUEUES = (("inbox", "Notices"), ("replies", "Replies to requests"))
#: Created last and deleted again, so that the directory has a tombstone to show.
_MISTAKE = "ams-app1\\ordres"

Operation = Callable[[Transaction], object]


def build(store: Store) -> GroupCommitWriter:
    """Fills an empty store; returns the closed writer for its statistics."""
    return asyncio.run(_build(store))


async def _build(store: Store) -> GroupCommitWriter:
    writer = GroupCommitWriter(store)
    try:
        await asyncio.gather(*(writer.submit(operation) for operation in operations()))
    finally:
        await writer.close()
    return writer


def is_demonstration(view: View) -> bool:
    """Returns whether a store holds the demonstration enterprise."""
    root = enterprise(view)
    return root is not None and root.id == SeededEntropy().guid()


def operations() -> Iterator[Operation]:
    """The operations that build the enterprise in an empty store, each for one transaction."""
    entropy = SeededEntropy()
    root = entropy.guid()
    sites = {site.name: entropy.guid() for site in _SITES}
    machines = {name: entropy.guid() for site in _SITES for name, _, _ in site.machines}
    networks = {name: entropy.guid() for name, _ in _NETWORKS}
    plan = _Plan(entropy, root, sites, machines, networks)
    yield plan.enterprise
    yield from plan.each_site()
    yield from plan.each_network()
    yield from plan.each_link()
    yield from plan.each_user()
    yield from plan.each_machine()
    yield from plan.each_queue()
    yield plan.mistake


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of the enterprise, with the identifiers of objects that others refer to."""

    entropy: SeededEntropy
    root: Guid
    sites: dict[str, Guid]
    machines: dict[str, Guid]
    networks: dict[str, Guid]

    def enterprise(self, tx: Transaction) -> None:
        pec = _SITES[0].machines[0][0]
        # The first number is assigned before the enterprise object can name the authority.
        partition = tx.partition(ENTERPRISE_PARTITION) or Partition(ENTERPRISE_PARTITION, pec)
        tx.put_partition(replace(partition, owner=pec))
        self._events(tx).create_directory_object(
            ObjectType.ENTERPRISE,
            props(
                {
                    PropId.E_ID: self.root,
                    PropId.E_NAME: ENTERPRISE_NAME,
                    PropId.E_PECNAME: pec,
                    PropId.E_LONG_LIVE: 4 * 86_400,
                    PropId.E_SECURITY: _descriptor("O:BAG:BAD:(A;;GA;;;BA)(A;;0x20020;;;WD)"),
                }
            ),
        )

    def each_site(self) -> Iterator[Operation]:
        for site in _SITES:
            routers = [self.machines[m] for m, bits, _ in site.machines if bits & ROUTING]
            yield self._event(
                ObjectType.SITE,
                props(
                    {
                        PropId.S_SITEID: self.sites[site.name],
                        PropId.S_PATHNAME: site.name,
                        PropId.S_PSC: site.machines[0][0],
                        PropId.S_GATES: tuple(routers),
                        PropId.S_PSC_SIGNPK: self._key(),
                        PropId.S_SECURITY: _descriptor("O:BAG:BAD:(A;;GA;;;BA)(A;;0x20024;;;AU)"),
                    }
                ),
            )

    def each_network(self) -> Iterator[Operation]:
        for name, protocol in _NETWORKS:
            properties: dict[int, PropVariant] = props(
                {
                    PropId.CN_GUID: self.networks[name],
                    PropId.CN_NAME: name,
                    PropId.CN_PROTOCOLID: protocol,
                }
            )
            yield self._event(ObjectType.CN, properties)

    def each_link(self) -> Iterator[Operation]:
        for first, second, cost, description in _LINKS:
            properties: dict[int, PropVariant] = props(
                {
                    PropId.L_ID: self.entropy.guid(),
                    PropId.L_NEIGHBOR1: self.sites[first],
                    PropId.L_NEIGHBOR2: self.sites[second],
                    PropId.L_ACTUAL_COST: cost,
                    PropId.L_DESCRIPTION: description,
                }
            )
            yield self._event(ObjectType.ROUTINGLINK, properties)

    def each_user(self) -> Iterator[Operation]:
        for index, name in enumerate(_USERS):
            certificate = self_made_certificate(name)
            properties: dict[int, PropVariant] = props(
                {
                    PropId.U_ID: self.entropy.guid(),
                    PropId.U_SID: Sid(5, (21, 1801, 135, 2103, 1101 + index)).to_bytes(),
                    PropId.U_SIGN_CERT: certificate,
                    PropId.U_DIGEST: (Guid(digest_of(certificate)),),
                }
            )
            yield self._event(ObjectType.USER, properties)

    def each_machine(self) -> Iterator[Operation]:
        for row, site in enumerate(_SITES):
            for number, (name, bits, system) in enumerate(site.machines):
                foreign = system == _FOREIGN
                network = self.networks["Mainframe" if foreign else "Corporate IP"]
                address = TaAddress.ip(f"10.{row + 1}.0.{number + 10}")
                addresses = (TaAddress.foreign(network) if foreign else address,)
                properties: dict[int, PropVariant] = props(
                    {
                        PropId.QM_MACHINE_ID: self.machines[name],
                        PropId.QM_SITE_IDS: (self.sites[site.name],),
                        PropId.QM_SERVICE: int(bits),
                        PropId.QM_OS: system,
                        PropId.QM_FOREIGN: int(foreign),
                        PropId.QM_ADDRESS: AddressList(addresses).to_bytes(),
                        PropId.QM_CNS: (network,),
                    }
                )
                if bits:
                    properties[PropId.QM_SIGN_PKS] = prop(PropId.QM_SIGN_PKS, self._key())
                yield self._create(ObjectType.MACHINE, name, properties)

    def each_queue(self) -> Iterator[Operation]:
        for path, label, special in queue_plan():
            properties: dict[int, PropVariant] = props({PropId.Q_LABEL: label, **special})
            if path.endswith("\\payments"):
                yield self._guarded(path, properties)
            else:
                yield self._create(ObjectType.QUEUE, path, properties)

    def _guarded(self, path: str, properties: dict[int, PropVariant]) -> Operation:
        """Creates a queue that only authenticated users may send to; sets security afterwards."""

        def operation(tx: Transaction) -> None:
            events = self._events(tx)
            queue = events.create(ObjectType.QUEUE, path, properties)
            security = _descriptor("O:BAG:BAD:P(A;;GA;;;BA)(A;;0x20026;;;AU)")
            events.update_directory_object(queue, props({PropId.Q_SECURITY: security}))

        return operation

    def mistake(self, tx: Transaction) -> None:
        events = self._events(tx)
        created = events.create(ObjectType.QUEUE, _MISTAKE, props({PropId.Q_LABEL: "A typo"}))
        events.delete_directory_object(created)

    def _events(self, tx: Transaction) -> DirectoryEvents:
        return DirectoryEvents(tx, NOW, self.entropy)

    def _event(self, kind: ObjectType, properties: dict[int, PropVariant]) -> Operation:
        return lambda tx: self._events(tx).create_directory_object(kind, dict(properties))

    def _create(self, kind: ObjectType, path: str, properties: dict[int, PropVariant]) -> Operation:
        return lambda tx: self._events(tx).create(kind, path, dict(properties))

    def _key(self) -> bytes:
        key = PublicKey.of(RsaPublicKey.of(self.entropy.modulus(1024), 65_537))
        return PublicKeys((key,)).to_bytes()


def queue_plan() -> Iterator[tuple[str, str, dict[int, PropVariant]]]:
    """The sixty queues: (path, label, special properties)."""
    names = [name for site in _SITES for name, _, _ in site.machines]
    for name in names:
        if "-app" in name:
            for queue, label, special in _QUEUES:
                yield f"{name}\\{queue}", label, dict(special)
        elif "-desk" in name:
            for queue, label in _DESK_QUEUES:
                yield f"{name}\\{queue}", label, {}
        elif "-host" in name:
            yield f"{name}\\ledger", "Mainframe gateway", {}
        elif "-dir" in name and not name.endswith("2"):
            yield f"{name}\\notices", "Operators' notices", {}


def self_made_certificate(name: str) -> bytes:
    """The part of an X.509 certificate that the directory checks: a DER SEQUENCE in a SEQUENCE."""
    inner = b"\x30" + _der(b"\x0c" + _der(f"CN={name}, O={ENTERPRISE_NAME}".encode()))
    return b"\x30" + _der(inner)


def _der(content: bytes) -> bytes:
    assert len(content) < 0x80
    return bytes([len(content)]) + content


def _descriptor(text: str) -> bytes:
    return parse_sddl(text).to_bytes()
