"""A large enterprise without faults: its messages are counted, and compared with the formulas.

All servers start at one moment with copies of one directory, as after a power failure everywhere.
Then they rest, clients make changes, and a backup controller joins. In between every replica has to
equal its authority. ``predicted`` is what docs/replication.md says under "How many messages".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PartitionDigest
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.convergence import Contents, comparable_digest, compare_digests
from mqis.protocol.replication.number_recovery import mark_served
from mqis.protocol.replication.server_identity import Role
from mqis.sim import bootstrap
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.scenario import Scenario, ScenarioServer, enterprise
from mqis.sim.simulated_server import SimServer
from mqis.sim.simulated_stores import MemoryDisk
from mqis.sim.workload import Properties
from mqis.sim.world import EPOCH, World
from mqis.texts import some
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import MessageOperation
from mqis.wire.seqnum import SequenceNumber

#: Changes that clients make, one after the other, each at another authority.
CHANGES = 5
#: The phases of a run: the start, the rest, the changes and the join.
PHASES = CHANGES + 3
#: Simulated seconds until messages that are under way have arrived, and the first ones of backup
#: controllers, which come 5 s after a start (MC-MQDSRP note 7).
_SETTLE_S = 30.0
#: The step in which the clock goes on while a change spreads, and the most that it may take.
_LOOK_S, _MOST_S = 0.001, 60.0
#: The faults that a violation names.
_SHOWN = 5
#: The name of the backup controller that joins.
_NEW = "NEW"

#: The names of the phases in which something has to spread.
CHANGE, JOIN = "a change", "a backup controller joins"

#: How many messages of each operation.
Messages = Counter[MessageOperation]


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of servers and of sites; each site has a PSC, or the PEC."""

    servers: int
    sites: int

    def __post_init__(self) -> None:
        if not 1 < self.sites <= self.servers:
            raise ValueError("an enterprise of this kind has two sites or more, each with a server")

    @property
    def backups(self) -> int:
        return self.servers - self.sites

    @property
    def scenario(self) -> Scenario:
        """Its servers: the BSCs are divided among the sites as evenly as can be."""
        each, more = divmod(self.backups, self.sites)
        return Scenario(0, enterprise(tuple(each + (n < more) for n in range(self.sites))))

    @classmethod
    def usual(cls, servers: int) -> Size:
        """Three sites for each ten servers."""
        return cls(servers, max(2, 3 * servers // 10))


@dataclass(frozen=True, slots=True)
class Phase:
    """What happened in one part of a run: the messages, and those that were predicted."""

    name: str
    predicted: Messages
    sent: Messages
    #: The bodies of all messages.
    bytes: int
    #: Simulated seconds until every replica was equal; None where nothing had to spread.
    spread_s: float | None = None

    @property
    def messages(self) -> int:
        return self.sent.total()


# --- the formulas ---------------------------------------------------------------------------------


def heartbeats(size: Size) -> int:
    """Those of one period: every PSC tells all others, and each backup is told by its PSC."""
    return size.sites * (size.sites - 1) + size.backups


def predicted_start(size: Size) -> Messages:
    """Every replica is asked for; a PSC acknowledges, and tells its backups what has come."""
    of_pscs = (size.sites - 1) * (size.sites + 1)  # sites of others, and the enterprise but for PEC
    asked = of_pscs + size.backups * (size.sites + 1)
    return Messages(
        {
            MessageOperation.SYNC_REQUEST: asked,
            MessageOperation.SYNC_REPLY: asked,
            MessageOperation.PSC_ACK: of_pscs,
            MessageOperation.BSC_ACK: size.backups,
            MessageOperation.CHANGE_PROPAGATION: heartbeats(size) + size.backups,
        }
    )


def predicted_rest(size: Size) -> Messages:
    return Messages({MessageOperation.CHANGE_PROPAGATION: heartbeats(size)})


def predicted_change(size: Size) -> Messages:
    """Every other server gets it once: from the authority, or from the PSC of its site."""
    return Messages({MessageOperation.CHANGE_PROPAGATION: size.servers - 1})


def predicted_join(size: Size) -> Messages:
    """A change makes its machine, its PSC greets it, and it asks for every partition."""
    return Messages(
        {
            MessageOperation.CHANGE_PROPAGATION: size.servers - 1 + 1,
            MessageOperation.SYNC_REQUEST: size.sites + 1,
            MessageOperation.SYNC_REPLY: size.sites + 1,
            MessageOperation.BSC_ACK: 1,
        }
    )


# --- the run --------------------------------------------------------------------------------------


class LargeEnterprise(World):
    """The simulated enterprise. The checks of each single step are left out: they are quadratic."""

    def __init__(self, size: Size) -> None:
        super().__init__(size.scenario, SimTrace())
        self.size = size
        self._sent = Messages()
        self._bytes = 0

    def observe(self, server: SimServer, tx: Transaction) -> None:
        """Checks nothing: ``_require_equal`` compares everything between two phases."""

    def committed(self, server: SimServer) -> None:
        """Checks nothing."""

    def _watch(self, sender: str, machine: str, body: bytes) -> None:
        self._sent[MessageOperation(operation_in(body))] += 1
        self._bytes += len(body)

    def phases(self) -> Iterator[Phase]:
        """Runs and yields one phase after the other; ``Violation`` if replicas differ."""
        size = self.size
        self._found()
        for server in self.servers.values():
            self.start(server)
        self.run_until(self.now + _SETTLE_S)
        yield self._phase("all servers start", predicted_start(size))
        self.run_until(self.now + self.settings.heartbeat_s)
        yield self._phase("a period of heartbeats", predicted_rest(size))
        for number in range(CHANGES):
            spread_s = self._change(number)
            yield self._phase(CHANGE, predicted_change(size), spread_s)
        spread_s = self._join()
        yield self._phase(JOIN, predicted_join(size), spread_s)

    def _phase(self, name: str, predicted: Messages, spread_s: float | None = None) -> Phase:
        self._require_equal()
        found = Phase(name, predicted, self._sent, self._bytes, spread_s)
        self._sent, self._bytes = Messages(), 0
        return found

    def _found(self) -> None:
        """Makes the directory at the PEC, and gives it to all servers."""
        maker = self._administrator
        original = MemoryDisk()
        pec = maker.new_server(0)
        with original.store.write() as tx:
            bootstrap.found(tx, pec.me, maker.key(0), pec.entropy, int(EPOCH))
            events = DirectoryEvents(tx, int(EPOCH), pec.entropy)
            others = list(enumerate(maker.identities))[1:]
            for index, me in others:
                if me.is_psc:
                    bootstrap.site_creator(me, self.scenario.servers[index].site)(events)
            for index, me in others:
                bootstrap.machine_creator(me, maker.key(index))(events)
        for index, me in enumerate(maker.identities):
            server = pec if not index else maker.new_server(index)
            assert isinstance(server.disk, MemoryDisk)
            server.disk.share(original)
            with server.disk.store.write() as tx:
                if me.is_psc:
                    mark_served(tx, me.site)
                if me.is_pec:
                    mark_served(tx, ENTERPRISE_PARTITION)

    def _change(self, number: int) -> float:
        """Creates a queue at an authority; returns the seconds until all servers have it."""
        server = self.servers[number % self.size.sites]
        path = f"{server.name}\\queue{number}"
        label: Properties = props({PropId.Q_LABEL: f"label {number}"})
        server.change(lambda events: events.create(ObjectType.QUEUE, path, label))
        self._set_alarm(server)
        return self._until(lambda: self._behind(server.me.site, self.servers.values()))

    def _join(self) -> float:
        """Makes a backup controller of the second site; returns the seconds until all are equal."""
        maker, index = self._administrator, len(self.scenario.servers)
        psc = maker.identities[1]
        seeds = {identity.id: identity.name for identity in (maker.identities[0], psc)}
        new = replace(psc, name=_NEW, id=Guid(b"NEW" + bytes(13)), role=Role.BSC, psc=psc.name)
        maker.identities.append(replace(new, seeds=seeds))
        plan = ScenarioServer(_NEW, self.scenario.servers[1].site, Role.BSC)
        self.scenario = replace(self.scenario, servers=(*self.scenario.servers, plan))
        maker.join(index)
        joined = self.servers[index]

        def lacking() -> list[str]:
            anywhere = [line for p in self._authorities() for line in self._behind(p, [joined])]
            return anywhere or self._behind(psc.site, self.servers.values())

        return self._until(lacking)

    def _until(self, lacking: Callable[[], list[str]]) -> float:
        """Runs until nothing is lacking, and lets what is under way arrive."""
        began = self.now
        while found := lacking():
            if self.now > began + _MOST_S:
                raise Violation("liveness", some(found, _SHOWN, "; "))
            self.run_until(self.now + _LOOK_S)
        spread_s = self.now - began
        self.run_until(began + _SETTLE_S)
        return spread_s

    # --- checks -----------------------------------------------------------------------------------

    def _authorities(self) -> dict[Guid, SimServer]:
        found = {s.me.site: s for s in self.servers.values() if s.me.is_psc}
        return found | {ENTERPRISE_PARTITION: self.servers[0]}

    def _behind(self, partition: Guid, servers: Iterable[SimServer]) -> list[str]:
        """The servers that lack changes of a partition."""
        with self._authorities()[partition].disk.store.read() as view:
            true = view.partition(partition)
        assert true is not None
        found = []
        for server in servers:
            with server.disk.store.read() as view:
                here = view.partition(partition)
            if here is None or here.last_seq != true.last_seq:
                found.append(f"{server.name} lacks changes of {partition}")
        return found

    def _require_equal(self) -> None:
        """Compares every copy with its authority's, by number and digest."""
        found = []
        for partition, authority in self._authorities().items():
            true = _copy(authority, partition)
            for server in self.servers.values():
                within = partition in (ENTERPRISE_PARTITION, server.me.site)
                if not _are_equal(_copy(server, partition), true, within_site=within):
                    found.append(f"{server.name} has another copy of {partition}")
        if found:
            raise Violation("agreement", some(found, _SHOWN, "; "))


#: The last number and the digest of a copy.
_Copy = tuple[SequenceNumber, PartitionDigest]


def _copy(server: SimServer, partition: Guid) -> _Copy | None:
    """A server's copy; None if it has none that can be compared."""
    with server.disk.store.read() as view:
        state = view.partition(partition)
        digest = None if state is None else comparable_digest(view, state)
    return None if state is None or digest is None else (state.last_seq, digest)


def _are_equal(copy: _Copy | None, true: _Copy | None, *, within_site: bool) -> bool:
    if copy is None or true is None or copy[0] != true[0]:
        return False
    found = compare_digests(copy[1], true[1], within_site=within_site, authority=true[1])
    return found is Contents.EQUAL
