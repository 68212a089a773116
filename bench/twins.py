"""The same queues in a directory of ours and in one of slapd's.

A queue lies below its machine in both, has the same properties, and is found by the same indexes:
name, identifier, machine, label, type. A hundred queues have one machine, a thousand one type.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

from bench.enterprise import DESCRIPTOR, NOW
from mqis.protocol.directory.descriptors import default_descriptor
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ANONYMOUS

SUFFIX = "o=bench"
PER_MACHINE, PER_TYPE = 100, 1_000
SECURITY = DESCRIPTOR.to_bytes()
#: As those give it who create queues here: callers without an account own what they make.
GIVEN = replace(DESCRIPTOR, owner=ANONYMOUS).to_bytes()
_ENTROPY = SystemEntropy()


def machine_name(number: int) -> str:
    return f"SERVER{number:05}"


def type_of(number: int) -> Guid:
    return Guid(b"type of queue" + number.to_bytes(3, "big"))


@dataclass(frozen=True, slots=True)
class Queue:
    """All of its names have the same length, whatever the number."""

    number: int
    #: Created while the clock runs: of a type that no lookup asks for.
    late: bool = False

    LATE_TYPE: ClassVar[Guid] = type_of(0xFFFFFF)

    @property
    def machine(self) -> str:
        return machine_name(self.number // PER_MACHINE)

    @property
    def name(self) -> str:
        return f"queue{self.number:07}"

    @property
    def path(self) -> str:
        return f"{self.machine}\\{self.name}"

    @property
    def dn(self) -> str:
        return f"cn={self.name},cn={self.machine},{SUFFIX}"

    @property
    def instance(self) -> bytes:
        """Sent by LDAP clients alone: our server makes identifiers itself."""
        return b"identifies" + self.number.to_bytes(6, "big")

    @property
    def label(self) -> str:
        return f"orders of customer {self.number:07}"

    @property
    def type(self) -> Guid:
        return self.LATE_TYPE if self.late else type_of(self.number // PER_TYPE)

    def properties(self) -> dict[int, PropVariant]:
        """What its creator sends; the server adds as many again."""
        return props(
            {
                PropId.Q_TYPE: self.type,
                PropId.Q_LABEL: self.label,
                PropId.Q_JOURNAL: 1,
                PropId.Q_QUOTA: 10_240,
                PropId.Q_BASEPRIORITY: 3,
                PropId.Q_PRIV_LEVEL: 1,
            }
        )

    def attributes(self) -> list[tuple[str, bytes]]:
        """The same, and what a server of ours adds: an LDAP client has to send all of it."""
        return [
            ("objectClass", b"benchQueue"),
            ("cn", self.name.encode()),
            ("queueInstance", self.instance),
            ("queuePath", self.path.encode()),
            ("queueMachine", self.machine.encode()),
            ("queueType", self.type.raw),
            ("queueLabel", self.label.encode()),
            ("queueJournal", b"1"),
            ("queueQuota", b"10240"),
            ("queueJournalQuota", b"4294967295"),
            ("queueBasePriority", b"3"),
            ("queueScope", b"1"),
            ("queueCreateTime", str(NOW).encode()),
            ("queueModifyTime", str(NOW).encode()),
            ("queueAuthenticate", b"0"),
            ("queueTransaction", b"0"),
            ("queuePrivLevel", b"1"),
            ("queueSecurity", SECURITY),
        ]


def fill(store: Store, machines: int, queues: int) -> list[Guid]:
    """A site, machines on which everyone may create, and queues; the machines' identifiers."""
    with store.write() as transaction:
        events = DirectoryEvents(transaction, NOW, _ENTROPY)
        psc = machine_name(0)
        site = events.create(ObjectType.SITE, "HEADQUARTERS", props({PropId.S_PSC: psc}))
        return populate(transaction, site.id, machines, queues)


def populate(transaction: Transaction, site: Guid, machines: int, queues: int) -> list[Guid]:
    """Those machines and queues in a site that is there."""
    events = DirectoryEvents(transaction, NOW, _ENTROPY, own_site=site)
    open_to_all = default_descriptor(ObjectType.MACHINE, None).to_bytes()
    ids = [
        events.create(ObjectType.MACHINE, machine_name(number), {}, security=open_to_all).id
        for number in range(machines)
    ]
    for queue in map(Queue, range(queues)):
        events.create(ObjectType.QUEUE, queue.path, queue.properties(), security=SECURITY)
    return ids


#: Text that ignores case, octets, numbers: the attributes above by their syntax.
_TEXT = ("queuePath", "queueMachine", "queueLabel")
_OCTETS = ("queueInstance", "queueType", "queueSecurity")
INDEXED = ("queueInstance", "queueMachine", "queueType", "queueLabel")


def schema() -> Iterator[str]:
    """The lines of slapd.conf that declare a queue, under an arc that anybody may use (2.25)."""
    names = [name for name, _ in Queue(0).attributes() if name not in ("objectClass", "cn")]
    for number, name in enumerate(names, 1):
        matching, syntax = "integerMatch", 27
        if name in _TEXT:
            matching, syntax = "caseIgnoreMatch", 15
        elif name in _OCTETS:
            matching, syntax = "octetStringMatch", 40
        yield (
            f"attributetype ( 2.25.1973.1.{number} NAME '{name}' EQUALITY {matching} "
            f"SYNTAX 1.3.6.1.4.1.1466.115.121.1.{syntax} SINGLE-VALUE )"
        )
    yield (
        "objectclass ( 2.25.1973.2.1 NAME 'benchQueue' SUP top STRUCTURAL "
        f"MUST ( cn $ {' $ '.join(names)} ) )"
    )


def ldif(machines: int, queues: int) -> Iterator[str]:
    yield f"dn: {SUFFIX}\nobjectClass: organization\no: bench\n\n"
    for name in map(machine_name, range(machines)):
        yield f"dn: cn={name},{SUFFIX}\nobjectClass: organizationalRole\ncn: {name}\n\n"
    for queue in map(Queue, range(queues)):
        yield f"dn: {queue.dn}\n"
        for name, value in queue.attributes():
            yield f"{name}:: {b64encode(value).decode()}\n"
        yield "\n"


def creates(first: int, encoding: str, message: Callable[[Queue], bytes]) -> Iterator[bytes]:
    """``message`` for one queue after the other, each made from the first by exchanging names."""
    model = Queue(first, late=True)
    template, old = message(model), _spellings(model, encoding)
    for number in count(first):
        made = template
        for before, after in zip(old, _spellings(Queue(number), encoding), strict=True):
            made = made.replace(before, after)
        yield made


def _spellings(queue: Queue, encoding: str) -> tuple[bytes, ...]:
    names = (queue.name, queue.machine, queue.label)
    return (queue.instance, *(name.encode(encoding) for name in names))
