"""The same queues for a directory of mqis and for one of slapd.

A queue is below its machine in both, has the same properties, and the same indexes: name,
identifier, machine, label, type. A hundred queues have one machine, a thousand have one type.
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
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ANONYMOUS

SUFFIX = "o=bench"
PER_MACHINE, PER_TYPE = 100, 1_000
SECURITY = DESCRIPTOR.to_bytes()
#: The descriptor that the clients send: anonymous callers own the queues that they create.
GIVEN = replace(DESCRIPTOR, owner=ANONYMOUS).to_bytes()
_ENTROPY = SystemEntropy()


def machine_name(number: int) -> str:
    return f"SERVER{number:05}"


def type_of(number: int) -> Guid:
    return Guid(b"type of queue" + number.to_bytes(3, "big"))


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue; the length of its names does not depend on its number."""

    number: int
    #: Created during a measurement: it has a type that no lookup asks for.
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
        """The identifier, which only LDAP clients send: mqis makes identifiers itself."""
        return b"identifies" + self.number.to_bytes(6, "big")

    @property
    def label(self) -> str:
        return f"orders of customer {self.number:07}"

    @property
    def type(self) -> Guid:
        return self.LATE_TYPE if self.late else type_of(self.number // PER_TYPE)

    def properties(self) -> dict[int, PropVariant]:
        """The properties that a client sends; the server adds as many."""
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
        """The same, and those that mqis adds, as an LDAP client has to send all of them."""
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
    """Creates a site, machines that everyone may create queues on, and queues.

    Returns the machines' identifiers.
    """
    with store.write() as transaction:
        events = DirectoryEvents(transaction, NOW, _ENTROPY)
        psc = machine_name(0)
        site = events.create(ObjectType.SITE, "HEADQUARTERS", props({PropId.S_PSC: psc}))
        return populate(transaction, site.id, machines, queues)


def populate(transaction: Transaction, site: Guid, machines: int, queues: int) -> list[Guid]:
    """Creates such machines and queues in an existing site."""
    events = DirectoryEvents(transaction, NOW, _ENTROPY, own_site=site)
    open_to_all = default_descriptor(ObjectType.MACHINE, None).to_bytes()
    ids = [
        events.create(ObjectType.MACHINE, machine_name(number), {}, security=open_to_all).id
        for number in range(machines)
    ]
    for queue in map(Queue, range(queues)):
        events.create(ObjectType.QUEUE, queue.path, queue.properties(), security=SECURITY)
    return ids


#: The attributes above by their syntax: text that ignores case, octets, numbers.
_TEXT = ("queuePath", "queueMachine", "queueLabel")
_OCTETS = ("queueInstance", "queueType", "queueSecurity")
INDEXED = ("queueInstance", "queueMachine", "queueType", "queueLabel")


def schema() -> Iterator[str]:
    """The lines of slapd.conf that declare a queue, under the free OID arc 2.25."""
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
    """Yields ``message`` for successive queues, by replacing the names in the first one."""
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
