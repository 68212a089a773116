"""The world of one run of a mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from random import Random

from mqis.admin.activedirectory.mirror import round as production
from mqis.admin.activedirectory.mirror.feed import read_identity
from mqis.admin.activedirectory.mirror.following import AWAY
from mqis.admin.activedirectory.mirror.round import EstateMirror, MirrorRound
from mqis.admin.activedirectory.mirror.writing import mirror_identity
from mqis.protocol.activedirectory.mirror.cursor import COMPARE_S, read_cursor
from mqis.protocol.activedirectory.mirror.leftout import read_left_out
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ldap.urls import LdapUrl
from mqis.protocol.ports import Store, Transaction, View
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.settings import LdapSettings
from mqis.sim.archive.disk import Ended
from mqis.sim.mutations import replaced
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.simulated_stores import Disk, MemoryDisk, SqliteDisk
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from tests.sim.mirror import checks
from tests.sim.mirror.checks import DomainFacts, ObjectKey
from tests.sim.mirror.domain import AccountRights, SimController, SimDomain, Touch
from tests.sim.mirror.edits import Edit, Editor, is_spoiled, is_unreadable
from tests.sim.mirror.scenario import Happening, MirrorFault, MirrorScenario, Round

FAULTS = (*(f"fault {fault}" for fault in MirrorFault), "killed")
#: The edits that the domain begins with.
_FIRST = (Edit.ADD_COMPUTER, Edit.ADD_COMPUTER, Edit.ADD_LINK, Edit.ADD_USER)
#: Rounds after the last fault in which the copy has to become equal.
_ROUNDS = 3
_OWNER = "corp.example"


#: What changes neither a controller's entries nor the account's rights.
_HARMLESS = (MirrorFault.DIE, MirrorFault.DROP, MirrorFault.BACKUP)

_DAYS = (MirrorFault.DAY, MirrorFault.MISSED, MirrorFault.ROLLBACK)


def _number(planned: tuple[int, Happening]) -> int:
    return planned[0]


class EndingStore:
    """``ports.Store`` of a process that may end at a write."""

    def __init__(self, inner: Store, writes: int | None, *, committed: bool) -> None:
        self._inner = inner
        self._writes = writes
        self._committed = committed

    def read(self) -> AbstractContextManager[View]:
        return self._inner.read()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        ends = self._writes is not None and self._writes <= 0
        if self._writes is not None:
            self._writes -= 1
        with self._inner.write() as tx:
            yield tx
            if ends and not self._committed:
                raise Ended
        if ends:
            raise Ended

    def check(self) -> list[str]:
        return self._inner.check()

    def close(self) -> None:
        """The disk closes the store."""


class MirrorWorld:
    """One run; ``run`` raises ``Violation`` if a rule does not hold."""

    def __init__(self, scenario: MirrorScenario, trace: SimTrace, directory: Path) -> None:
        self.scenario = scenario
        self.trace = trace
        self.now = self.healed_s = 0.0
        self.messages = 0
        self._disk: Disk = SqliteDisk(directory, "mirror") if scenario.sqlite else MemoryDisk()
        self._kept = self._disk.backup()
        self._rights = AccountRights(scenario.dirsync, scenario.deleted)
        self._domain = SimDomain(self._rights)
        self._editor = Editor(self._domain)
        self._client: LdapDirectoryClient | None = None
        self._mirror: EstateMirror | None = None
        #: The controller that a new process of the mirror asks first.
        self._first = 0
        self._searches = 0
        self._clock_s = 1_800_000_000.0
        #: The last moment at which something changed of which no number tells.
        self._missed_s = 0.0
        self._during: list[tuple[int, Happening]] = []
        #: What every controller has had since the round began.
        self._always: set[ObjectKey] = set()

    def close(self) -> None:
        self._disk.close()

    def run(self) -> None:
        with replaced(((production, "_BATCH", lambda _: self.scenario.batch),)):
            asyncio.run(self._run())

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            for controller in self._domain.controllers:
                await stack.enter_async_context(controller)
                controller.on_search = self._searched
            stack.push_async_callback(self._end_process)
            random = Random(f"{self.scenario.seed}/first")
            for site in (Edit.ADD_SITE, Edit.ADD_SITE, Edit.ADD_SITE, *_FIRST):
                self._editor.perform(site, random)
            self._spread((0, 1))
            for controller in self._domain.controllers:
                self._domain.back_up(controller)
            for step in self.scenario.steps:
                self.now += 1.0
                if isinstance(step, Round):
                    await self._round(step)
                else:
                    await self._happen(step)
            await self._heal()

    def _note(self, kind: str, text: str = "") -> None:
        self.trace.note(self.now, kind, text)

    # --- what happens -----------------------------------------------------------------------------

    async def _happen(self, happening: Happening) -> None:
        self._happens(happening, None)
        if happening.what is MirrorFault.REVIVE:
            for controller in self._domain.controllers:
                await controller.start()
        elif happening.what is MirrorFault.EXCHANGE:
            await self._exchange()
        elif happening.what is MirrorFault.COPY:
            self._kept = self._disk.backup()
        elif happening.what in (MirrorFault.RESTART, MirrorFault.REPLACE):
            await self._end_process()
            self._first = happening.salt % 2
            if happening.what is MirrorFault.REPLACE:
                self._kept()

    async def _exchange(self) -> None:
        up = [controller for controller in self._domain.controllers if controller.up]
        for controller in self._domain.controllers:
            await controller.start()
        for controller in up if len(up) == 1 else ():
            controller.stop()

    def _happens(self, happening: Happening, answering: SimController | None) -> None:
        """Does what needs no waiting, between rounds or before a search of one."""
        random = Random(happening.salt)
        if isinstance(happening.what, MirrorFault):
            self._note(f"fault {happening.what}")
            controller = answering or random.choice(self._domain.controllers)
            if happening.what in _DAYS:
                self._pass_day(happening.what, random, controller)
            else:
                self._fail(happening.what, random, controller, cut=answering is not None)
        else:
            for edit in happening.what:
                self._note("edit", edit)
                self._editor.perform(edit, random)
            self._spread(happening.heard)

    def _spread(self, heard: tuple[int, ...]) -> None:
        for number in heard:
            self._domain.spread(self._domain.controllers[number])

    def _fail(
        self, fault: MirrorFault, random: Random, controller: SimController, *, cut: bool
    ) -> None:
        match fault:
            case MirrorFault.DIE if cut:
                controller.cut_after = random.randrange(4)
                asyncio.get_running_loop().call_soon(controller.stop)
            case MirrorFault.DIE:
                controller.stop()
            case MirrorFault.DROP if cut:
                controller.cut_after = random.randrange(4)
            case MirrorFault.DROP:
                controller.disconnect()
            case MirrorFault.BACKUP:
                self._domain.back_up(controller)
            case MirrorFault.RESTORE:
                self._domain.restore(controller)
                if random.random() < 0.7:
                    self._domain.spread(controller)
            case MirrorFault.DIRSYNC:
                self._rights.dirsync = not self._rights.dirsync
            case MirrorFault.DELETED:
                self._rights.deleted = not self._rights.deleted
            case MirrorFault.BLIND | MirrorFault.SIGHTED:
                self._rights.contents = fault is MirrorFault.SIGHTED
            case MirrorFault.BARE:
                self._bare(random)
            case MirrorFault.SHOWN:
                self._show()

    def _bare(self, random: Random) -> None:
        objects = self._editor.objects()
        for guid in random.sample(objects, min(2, len(objects))):
            self._rights.bare.add(guid.raw)
            self._domain.make(Touch(guid))

    def _pass_day(self, fault: MirrorFault, random: Random, controller: SimController) -> None:
        self._clock_s += COMPARE_S
        if fault is MirrorFault.ROLLBACK:
            self._missed_s = self._clock_s
            self._domain.roll_back(controller)
        elif fault is MirrorFault.MISSED and (queues := self._editor.found(b"mSMQQueue")):
            self._missed_s = self._clock_s
            chosen = Guid(random.choice(queues).values("objectGUID")[0])
            self._domain.miss(chosen, f"missed {random.randrange(1000)}".encode())

    def _show(self) -> None:
        """The descriptors change, and with them the numbers of the objects."""
        for raw in sorted(self._rights.bare):
            self._domain.make(Touch(Guid(raw)))
        self._rights.bare.clear()
        self._spread((0, 1))

    # --- the mirror -------------------------------------------------------------------------------

    async def _end_process(self) -> None:
        if self._client is not None:
            await self._client.close()
        self._client = self._mirror = None

    def _opened(self) -> LdapDirectoryClient:
        if self._client is None:
            order = self._domain.controllers[:: -1 if self._first else 1]
            urls = tuple(LdapUrl.parse(controller.url) for controller in order)
            self._client = LdapDirectoryClient(DomainControllers(LdapSettings(urls)))
        return self._client

    async def _begun(self, store: Store) -> EstateMirror:
        """The mirror of this process, begun as the command does."""
        client = self._opened()
        if self._mirror is None:
            server = await read_identity(client)
            with store.write() as tx:
                mirror_identity(tx, [server.domain])
            self._mirror = EstateMirror(
                client, store, _OWNER, sweep_share=float("inf"), clock=lambda: self._clock_s
            )
        self._mirror._store = store
        return self._mirror

    def _searched(self, controller: SimController) -> None:
        self.messages += 1
        self._searches += 1
        while self._during and self._during[0][0] < self._searches:
            self._happens(self._during.pop(0)[1], controller)
            self._always &= self._everywhere()

    def _everywhere(self) -> set[ObjectKey]:
        first, second = (DomainFacts(c.entries).objects.keys() for c in self._domain.controllers)
        return first & second

    async def _round(self, step: Round) -> MirrorRound | None:
        """Makes a round and checks the copy; returns None if the round did not end well."""
        self._searches = 0
        self._during = sorted(step.during, key=_number)
        self._always = self._everywhere()
        before, missed = self._held(), self._has_missed()
        store = EndingStore(self._disk.store, step.writes, committed=step.committed)
        done: MirrorRound | None = None
        try:
            done = await (await self._begun(store)).round()
        except AWAY as error:
            self._note("failed", type(error).__name__)
        except Ended:
            self._note("killed")
            await self._end_process()
        fired = sorted(step.during, key=_number)[: len(step.during) - len(self._during)]
        self._during = []
        if done is not None:
            counts = done.counts
            self._note("round", f"{done.fresh} {counts.created} {counts.updated} {counts.deleted}")
            checks.check_differences(done.differences, missed=missed or self._has_missed())
        calm = all(happening.what in _HARMLESS for _, happening in fired)
        self._check(before, done if calm else None)
        return done

    # --- checks -----------------------------------------------------------------------------------

    def _has_missed(self) -> bool:
        """Returns whether the copy lacks a change that only a comparison finds."""
        with self._disk.store.read() as view:
            cursor = read_cursor(view)
        return cursor is not None and cursor.compared_s < self._missed_s

    def _held(self) -> dict[ObjectKey, checks.Facts]:
        with self._disk.store.read() as view:
            return checks.held(view)

    def _check(self, before: dict[ObjectKey, checks.Facts], done: MirrorRound | None) -> None:
        with self._disk.store.read() as view:
            copy, left_out = checks.held(view), read_left_out(view)
            checks.check_records(view, copy)
        checks.check_deletions(before.keys() - copy.keys(), self._always)
        if done is not None and self._rights.contents:
            server = done.cursor.server.invocation
            answered = next(c for c in self._domain.controllers if c.invocation == server)
            domain, unread = DomainFacts(answered.entries), self._unread(answered)
            checks.check_equal(copy, domain, unread)
            checks.check_named(copy, domain, unread, set(left_out))
            spoiled = {Guid(e.values("objectGUID")[0]) for e in answered.entries if is_spoiled(e)}
            checks.check_spoiled(spoiled - unread, set(left_out))

    def _unread(self, controller: SimController) -> set[Guid]:
        bare = {Guid(raw) for raw in self._rights.bare}
        spoiled = {Guid(e.values("objectGUID")[0]) for e in controller.entries if is_unreadable(e)}
        # The gates of a site are machines that the account can read.
        sites = {Guid(e.values("objectGUID")[0]) for e in self._editor.found(b"site") if bare}
        return bare | spoiled | sites

    async def _heal(self) -> None:
        """Ends all faults: the copy becomes the domain, and then nothing is written any more."""
        self._note("heal")
        for controller in self._domain.controllers:
            await controller.start()
        self._rights.contents = True
        self._show()
        self._editor.perform(Edit.MEND, Random(0))
        self._spread((0, 1))
        for _ in range(_ROUNDS):
            self.now += 1.0
            self.healed_s += 1.0
            done = await self._round(Round())
        if done is None or done.counts.written:
            raise Violation("liveness", "the mirror does not come to rest")
        if self._has_missed():
            raise Violation("liveness", "nobody has compared everything for a day")
        checks.check_equal(self._held(), DomainFacts(self._domain.newest.entries), set())
        await self._compare_with_new()

    async def _compare_with_new(self) -> None:
        """A mirror that begins now has the same objects, with all their properties."""
        fresh = MemoryStore()
        await EstateMirror(self._opened(), fresh, _OWNER, clock=lambda: self._clock_s).round()
        with self._disk.store.read() as view, fresh.read() as whole:
            for kind in ORDER:
                for obj in whole.objects(kind):
                    found = view.get(kind, obj.id)
                    if found is None or found.path != obj.path:
                        continue  # another computer has the name
                    if found.properties != obj.properties:
                        raise Violation("the copy is equal", f"{kind.label} {obj.path or obj.id}")
