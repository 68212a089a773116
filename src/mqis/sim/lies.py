"""The messages of a hostile server, which has its own key and no other.

Every lie is a list of replication messages with their addressees. A backup controller may send
requests that its own clients could have asked for. Those are ``honest``; any other effect of a lie
is a violation. A PSC may lie about its own partition, whose authority it is, but not about others'
objects: it gives out a number for a change that names one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
)
from mqis.protocol.directory.ownchange import NotAuthority
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Entropy, Transaction
from mqis.protocol.replication.outgoing_changes import requested
from mqis.protocol.replication.replicated import whole_object
from mqis.protocol.replication.server_identity import Server
from mqis.sim.steps import Change, Falsehood
from mqis.sim.stranger import Recorder, number
from mqis.sim.workload import operation
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    Message,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
    decode_message,
)
from mqis.wire.mqdsrp.propertylist import Listed
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.seqnum import SequenceNumber

_MIN, _MAX = SequenceNumber.MIN, SequenceNumber.MAX
_STORM = 12
#: A descriptor that allows everything to everyone.
_OPEN_DESCRIPTOR = SecurityDescriptor(control=Control.DACL_PRESENT).to_bytes()
#: Changes that any client may ask a backup controller for, without special rights.
_ORDINARY = (
    Change.CREATE_QUEUE,
    Change.UPDATE_QUEUE,
    Change.DELETE_QUEUE,
    Change.CREATE_USER,
)


@dataclass(slots=True)
class Situation:
    """The knowledge of the lying server, and the messages that it sends."""

    random: Random
    me: Server
    tx: Transaction
    entropy: Entropy
    #: All servers of the enterprise.
    servers: list[Server]
    #: A key pair that the liar has made up, beside its own.
    key: RsaPublicKey
    recorder: Recorder
    unix: int
    #: Whether the numbers of the liar's partition are its to give out now.
    gives_numbers: bool = True
    said: list[tuple[str, Message]] = field(default_factory=list)
    #: The requests in ``said`` that it is entitled to make.
    honest: list[ChangeRequest] = field(default_factory=list)
    #: The false changes under numbers of its own partition, which are used up then.
    numbered: list[DirectoryChange] = field(default_factory=list)

    def say(self, machine: str, message: Message) -> None:
        self.said.append((machine, message))

    def other(self) -> Server:
        return self.random.choice([server for server in self.servers if server is not self.me])

    def partition(self) -> Partition:
        return self.random.choice(list(self.tx.partitions()))

    def object(self, *types: ObjectType) -> DirectoryObject | None:
        kind = self.random.choice(types or (ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.USER))
        found = list(self.tx.objects(kind))
        return self.random.choice(found) if found else None

    def stamp(self) -> SequenceNumber:
        """The time stamp of a request: mostly right, sometimes missing or far off."""
        off = self.random.choice((0, 0, 0, -3_600, 3_600, 80_000))
        stamp = 0 if self.random.random() < 0.1 else int((self.unix + off) * 1_000_000)
        return SequenceNumber(stamp + self.random.randrange(1_000_000) if stamp else 0)

    def change(
        self,
        command: Command,
        path: str | None,
        guid: Guid | None,
        partition: Guid,
        properties: Iterable[tuple[int, PropVariant]],
    ) -> DirectoryChange:
        """A change for a request."""
        listed = tuple(properties)
        return DirectoryChange(command, path, guid, partition, _MIN, self.stamp(), _MIN, listed)

    def request(self, change: DirectoryChange, requester: str, psc: str | None) -> ChangeRequest:
        number = self.random.getrandbits(32)
        return ChangeRequest(self.me.site, change.partition, number, requester, psc, change)

    def ask(self, change: DirectoryChange) -> ChangeRequest:
        """Sends a request in the liar's own name, to the authority or to its own PSC."""
        state = self.tx.partition(change.partition)
        direct = state is not None and state.owner and self.random.random() < 0.5
        psc = None if direct and self.random.random() < 0.5 else self.me.psc
        request = self.request(change, self.me.name, psc)
        self.say(state.owner if direct and state is not None else self.me.psc, request)
        return request


def make_lie(falsehood: Falsehood, situation: Situation) -> None:
    """Fills ``said`` and ``honest``; leaves both empty if there is nothing to lie about."""
    _LIES[falsehood](situation)


# --- requests -------------------------------------------------------------------------------------


def _ordinary(s: Situation, *kinds: Change) -> DirectoryChange | None:
    """A change that a client of a backup controller could ask for, in any partition."""
    events = DirectoryEvents(s.tx, 0, s.entropy, own_site=s.me.site, owns=lambda _partition: False)
    try:
        operation(s.random.choice(kinds or _ORDINARY), s.random.getrandbits(32))(events)
    except NotAuthority as elsewhere:
        return requested(elsewhere.change, s.stamp())
    except DirectoryError:
        pass
    return None


def _request(s: Situation) -> None:
    change = _ordinary(s)
    if change is not None:
        s.honest.append(s.ask(change))


def _impersonation(s: Situation) -> None:
    """A request in another server's name, under a number that the server may use next."""
    change = _ordinary(s)
    if change is None:
        return
    state = s.tx.partition(change.partition)
    victim = s.other()
    psc = s.random.choice((s.me.name, victim.psc or None, s.me.psc, None))
    request = s.request(change, victim.name, psc)
    heard = [decode_message(h.message.properties.body) for h in s.recorder.kind("change_request")]
    numbers = [
        r.request_id for r in heard if isinstance(r, ChangeRequest) and r.requester == victim.name
    ]
    if numbers:
        following = (s.random.choice(numbers) + s.random.randrange(3)) % (1 << 32)
        request = ChangeRequest(
            request.site, request.partition, following, victim.name, psc, change
        )
    owner = "" if state is None else state.owner
    s.say(s.random.choice((owner or s.me.psc, s.me.psc)), request)


def _misplaced(s: Situation) -> None:
    """A request for a queue in a partition other than its machine's."""
    change = _ordinary(s, Change.CREATE_QUEUE)
    if change is None:
        return
    elsewhere = [state.id for state in s.tx.partitions() if state.id != change.partition]
    if elsewhere:
        place, properties = s.random.choice(elsewhere), change.properties
        s.ask(s.change(Command.CREATE, change.path, None, place, properties))


def _collision(s: Situation) -> None:
    """A request for a queue with the identifier of an object that every server holds."""
    change = _ordinary(s, Change.CREATE_QUEUE)
    if change is not None:
        pec = s.servers[0]
        taken = s.random.choice((pec.id, pec.site))
        others = (p for p in change.properties if p[0] != PropId.Q_INSTANCE)
        properties = (*others, pair(PropId.Q_INSTANCE, taken))
        s.ask(s.change(Command.CREATE, change.path, None, change.partition, properties))


def _update(s: Situation, obj: DirectoryObject, *properties: tuple[int, PropVariant]) -> None:
    s.ask(s.change(Command.UPDATE, None, obj.id, obj.partition, properties))


def _delete(s: Situation, obj: DirectoryObject) -> None:
    properties = pair(PropId.D_SCOPE, 1), pair(PropId.D_OBJTYPE, int(obj.type))
    s.ask(s.change(Command.DELETE, None, obj.id, obj.partition, properties))


def _create(s: Situation, path: str, partition: Guid, properties: dict[int, PropVariant]) -> None:
    s.ask(s.change(Command.CREATE, path, None, partition, properties.items()))


def _role(s: Situation) -> None:
    """A request that makes an existing or new machine a controller or a router."""
    # No client of the simulation sets these bits, so a machine does not have them already.
    router = ServiceBits.ROUTING | ServiceBits.RAS
    bits = s.random.choice((ServiceBits.PSC, ServiceBits.PEC, ServiceBits.BSC, router))
    service = int(bits)
    if s.random.random() < 0.5:
        own = s.tx.get(ObjectType.MACHINE, s.me.id)
        machine = own if s.random.random() < 0.5 else s.object(ObjectType.MACHINE)
        if machine is not None and machine.value(PropId.QM_SERVICE) != int(bits):
            _update(s, machine, pair(PropId.QM_SERVICE, service))
        return
    identifier = Guid(s.random.randbytes(16))
    properties: dict[int, PropVariant] = props(
        {
            PropId.QM_MACHINE_ID: identifier,
            PropId.QM_SITE_ID: s.me.site,
            PropId.QM_SERVICE: service,
            PropId.QM_SIGN_PK: key_list(s.key),
        }
    )
    _create(s, f"rogue{s.random.getrandbits(16)}", s.me.site, properties)


def _key(s: Situation) -> None:
    """A request that sets the liar's key as that of another server or of a site."""
    blob = key_list(s.key)
    if s.random.random() < 0.3:
        site = s.object(ObjectType.SITE)
        if site is not None:
            _update(s, site, pair(PropId.S_PSC_SIGNPK, blob))
        return
    machine = s.tx.get(ObjectType.MACHINE, s.other().id)
    if machine is not None:
        _update(s, machine, pair(PropId.QM_SIGN_PK, blob))


_DESCRIPTORS = {
    ObjectType.MACHINE: PropId.QM_SECURITY,
    ObjectType.SITE: PropId.S_SECURITY,
    ObjectType.ENTERPRISE: PropId.E_SECURITY,
}


def _descriptor(s: Situation) -> None:
    """A request that opens the descriptor of a server, another site's machine, a site or the
    enterprise."""
    obj = s.object(*_DESCRIPTORS)
    if obj is not None and (
        obj.partition != s.me.site or ServiceAttributes.of(obj).role is not None
    ):
        _update(s, obj, pair(_DESCRIPTORS[obj.type], _OPEN_DESCRIPTOR))


def _site(s: Situation) -> None:
    """A request that creates a site for the liar, changes a site's PSC, or deletes such a site."""
    site, choice = s.object(ObjectType.SITE), s.random.randrange(3)
    if choice == 0:
        properties: dict[int, PropVariant] = props(
            {
                PropId.S_SITEID: Guid(s.random.randbytes(16)),
                PropId.S_PSC: s.me.name,
            }
        )
        name = f"rogue{s.random.getrandbits(16)}"
        _create(s, name, ENTERPRISE_PARTITION, properties)
    elif site is not None and choice == 1:
        _update(s, site, pair(PropId.S_PSC, s.me.name))
    elif site is not None and site.value(PropId.S_PSC):
        _delete(s, site)


def _enterprise(s: Situation) -> None:
    found = s.object(ObjectType.ENTERPRISE)
    if found is not None:
        _update(s, found, pair(PropId.E_PECNAME, s.me.name))


def _server(s: Situation) -> None:
    """A request that deletes, renames or moves the machine of another server."""
    machine = s.tx.get(ObjectType.MACHINE, s.other().id)
    if machine is None:
        return
    choice = s.random.randrange(3)
    if choice == 0:
        _delete(s, machine)
    elif choice == 1:
        name = f"gone{s.random.getrandbits(16)}"
        _update(s, machine, pair(PropId.QM_PATHNAME, name))
    else:
        site = s.object(ObjectType.SITE)
        if site is not None and site.id != machine.partition:
            _update(s, machine, pair(PropId.QM_SITE_ID, site.id))


# --- messages that only other servers may send ----------------------------------------------------


def _answer(s: Situation) -> None:
    """Success replies to pending requests of other servers."""
    for heard in s.recorder.kind("change_request")[-3:]:
        request = decode_message(heard.message.properties.body)
        if isinstance(request, ChangeRequest):
            reply = ChangeReply(s.me.site, request.request_id, 0, request.requester)
            s.say(s.random.choice((request.requester, s.me.psc)), reply)


def _forged(s: Situation, state: Partition) -> tuple[DirectoryChange, ...]:
    """Forged changes under the partition's next numbers: synchronised objects and deletions."""
    seq = state.last_seq.increment()
    held = [obj for obj in (s.object() for _ in range(3)) if obj is not None]
    made = []
    for obj in held:
        dead = s.random.random() < 0.5
        properties: Listed = whole_object(obj)
        if dead:
            properties = (
                pair(PropId.D_SCOPE, 1),
                pair(PropId.D_OBJTYPE, int(obj.type)),
            )
        command = Command.DELETE if dead else Command.SYNC
        numbers = seq.decrement(), seq, state.purged_seq
        made.append(DirectoryChange(command, None, obj.id, state.id, *numbers, properties))
        seq = seq.increment()
    return tuple(made)


def _propagation(s: Situation) -> None:
    state = s.partition()
    s.say(s.other().name, ChangePropagation(s.me.site, _forged(s, state)))


def _heartbeat(s: Situation) -> None:
    """A heartbeat with wrong numbers, in the liar's name or the authority's."""
    state = s.partition()
    last = number(s.random, state.last_seq)
    numbers = PartitionSeqNumbers(state.id, last, s.random.choice((state.purged_seq, last)))
    name = s.random.choice((s.me.name, state.owner or s.me.psc))
    s.say(s.other().name, ChangePropagation(s.me.site, (), Heartbeat(name, (numbers,))))


def _sync_reply(s: Situation) -> None:
    """An unrequested sync reply from where others probably are: the start, or the last number."""
    state = s.partition()
    changes = _forged(s, state)
    end = changes[-1].seq if changes else number(s.random, state.last_seq)
    begin = s.random.choice((_MIN, state.last_seq))
    purged = s.random.choice((state.purged_seq, number(s.random, state.purged_seq)))
    more = s.random.choice(list(Sync0))
    s.say(s.other().name, SyncReply(s.me.site, state.id, begin, end, purged, more, changes))


def _purge(s: Situation) -> None:
    state = s.partition()
    s.say(s.other().name, AlreadyPurged(s.me.site, state.id, number(s.random, state.last_seq)))


def _acknowledgement(s: Situation) -> None:
    """A false acknowledgement of another PSC, so that an authority purges tombstones too early."""
    state = s.partition()
    pscs = [server for server in s.servers if server.is_psc and not server.is_called(state.owner)]
    psc = s.random.choice(pscs or [s.me])
    named = psc if s.random.random() < 0.8 else s.me
    seq = s.random.choice((state.last_seq, state.last_seq, number(s.random, state.last_seq), _MAX))
    ack = PscAck(named.site, named.site, state.id, seq, named.name)
    s.say(state.owner or s.me.psc, ack)
    s.say(s.me.psc, BscAck(s.me.site, s.other().id, s.random.choice((s.me.name, s.other().name))))


def _sync_request(s: Situation) -> None:
    """Many requests for everything, in the liar's name and in others'."""
    state, target = s.partition(), s.other()
    for _ in range(_STORM):
        name = s.me.name if s.random.random() < 0.7 else s.other().name
        known = s.random.choice((_MIN, _MAX))
        full = s.random.random() < 0.5
        s.say(target.name, SyncRequest(s.me.site, state.id, _MIN, _MAX, known, full, 0, name))


# --- an authority that reaches for others' objects ------------------------------------------------


def _foreign(s: Situation, command: Command) -> None:
    """Tells all servers of a change to another authority's object as if it were the liar's own.

    An authority that is being restored, or is new in office, has no numbers to give out yet.
    """
    if s.me.is_bsc or not s.gives_numbers:
        return
    state, obj = s.tx.partition(s.me.site), s.object(ObjectType.QUEUE, ObjectType.MACHINE)
    if state is None or obj is None or obj.partition == s.me.site:
        return
    properties: Listed = (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, int(obj.type)),
    )
    if command is Command.UPDATE:
        properties = whole_object(obj)
    seq = state.last_seq.increment()
    numbers = state.last_seq, seq, state.purged_seq
    change = DirectoryChange(command, None, obj.id, state.id, *numbers, properties)
    s.numbered.append(change)
    for server in s.servers:
        if server is not s.me:
            s.say(server.name, ChangePropagation(s.me.site, (change,)))


def _foreign_delete(s: Situation) -> None:
    _foreign(s, Command.DELETE)


def _foreign_update(s: Situation) -> None:
    _foreign(s, Command.UPDATE)


_LIES: dict[Falsehood, Callable[[Situation], None]] = {
    Falsehood.REQUEST: _request,
    Falsehood.IMPERSONATION: _impersonation,
    Falsehood.MISPLACED: _misplaced,
    Falsehood.COLLISION: _collision,
    Falsehood.ROLE: _role,
    Falsehood.KEY: _key,
    Falsehood.DESCRIPTOR: _descriptor,
    Falsehood.SITE: _site,
    Falsehood.ENTERPRISE: _enterprise,
    Falsehood.SERVER: _server,
    Falsehood.ANSWER: _answer,
    Falsehood.PROPAGATION: _propagation,
    Falsehood.HEARTBEAT: _heartbeat,
    Falsehood.SYNC_REPLY: _sync_reply,
    Falsehood.PURGE: _purge,
    Falsehood.ACKNOWLEDGEMENT: _acknowledgement,
    Falsehood.SYNC_REQUEST: _sync_request,
    Falsehood.FOREIGN_DELETE: _foreign_delete,
    Falsehood.FOREIGN_UPDATE: _foreign_update,
}
