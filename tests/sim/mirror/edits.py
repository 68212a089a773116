"""The changes of the domain's administrators; each finds its objects by chance."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from random import Random

from mqis.testing.ldap import name_of
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import (
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.responses import SearchEntry
from mqis.wire.security.sid import Sid
from tests.sim.mirror.domain import SimDomain

_QUEUES = ("orders", "bills", "stock", "news")
_COMPUTERS = ("SRV1", "SRV2", "SRV3", "SRV4")
_SITES = ("Berlin", "Paris", "Rome")
_USERS = ("anna", "bert")
#: Neither a key nor a descriptor.
_GARBLED = b"garbled"


class Edit(StrEnum):
    ADD_QUEUE = "add a queue"
    DELETE_QUEUE = "delete a queue"
    REMAKE_QUEUE = "delete a queue and make it again"
    RENAME_QUEUE = "rename a queue"
    SWAP_QUEUES = "exchange the names of two queues"
    SHIFT_QUEUES = "give each queue the name of the next"
    LABEL = "label a queue"
    ADD_COMPUTER = "add a computer"
    ADD_TWIN = "add a computer whose name another has"
    DELETE_COMPUTER = "delete a computer"
    DELETE_MACHINE = "remove message queuing from a computer"
    REMAKE_COMPUTER = "delete a computer and make it again"
    RENAME_COMPUTER = "rename a computer"
    SWAP_COMPUTERS = "exchange the names of two computers"
    MOVE_COMPUTER = "move a computer"
    RESITE = "move a machine to another site"
    ROUTE = "name the routing servers of a machine"
    ADD_SITE = "add a site"
    DELETE_SITE = "delete a site"
    RENAME_SITE = "rename a site"
    ADD_LINK = "link two sites"
    DELETE_LINK = "delete a link"
    CHANGE_LINK = "change cost and gates of a link"
    ADD_USER = "add a user"
    DELETE_USER = "delete a user"
    CERTIFY = "register or remove a user's certificate"
    SPOIL = "write a value that is no value"
    SPOIL_KEY = "write a key of a computer that is no key"
    SPOIL_RIGHTS = "write permissions that are none"
    MEND = "write values again that are some"


class Editor:
    """Performs edits. One that finds nothing to change does nothing."""

    def __init__(self, domain: SimDomain) -> None:
        self._domain = domain
        root, configuration = domain.newest.root, domain.newest.configuration
        self._places = tuple(f"{name},{root}" for name in ("CN=Computers", "OU=Branch"))
        self._users = f"CN=Users,{root}"
        self._sites = f"CN=Sites,{configuration}"
        self._services = f"CN=MsmqServices,CN=Services,{configuration}"
        #: Counts what has to be unique: accounts, names of links, temporary names, values.
        self._number = 0
        domain.put(self._places[1], objectClass=b"organizationalUnit")

    def found(self, kind: bytes) -> list[SearchEntry]:
        """The entries of a class that are not deleted, in the order of their names."""
        held = self._domain.newest.entries
        live = [e for e in held if kind in e.values("objectClass") and not e.values("isDeleted")]
        return sorted(live, key=lambda e: e.name)

    def perform(self, edit: Edit, random: Random) -> None:
        method: Callable[[Random], None] = getattr(self, f"_{edit.name.lower()}")
        method(random)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _exists(self, name: str) -> bool:
        return self._domain.newest._entry(name) is not None

    def _delete(self, name: str) -> None:
        self._domain.make(DeleteEntry(name, tree=True))

    def _rename(self, name: str, leaf: str, parent: str | None = None) -> None:
        self._domain.make(RenameEntry(name, f"CN={leaf}", parent=parent))

    def _set(self, name: str, **attributes: bytes | tuple[bytes, ...]) -> None:
        changes = (
            AttributeChange(ModifyKind.REPLACE, key, (v,) if isinstance(v, bytes) else v)
            for key, v in attributes.items()
        )
        self._domain.make(ModifyEntry(name, tuple(changes)))

    # --- queues -----------------------------------------------------------------------------------

    def _add_queue(self, random: Random) -> None:
        machines, leaf = self.found(b"mSMQConfiguration"), random.choice(_QUEUES)
        if machines:
            self._make_queue(f"CN={leaf},{random.choice(machines).name}")

    def _make_queue(self, name: str) -> None:
        if not self._exists(name):
            label = f"label {self._next()}".encode()
            self._domain.put(name, objectClass=b"mSMQQueue", mSMQLabelEx=label)

    def _queue(self, random: Random) -> str | None:
        queues = self.found(b"mSMQQueue")
        return random.choice(queues).name if queues else None

    def _neighbours(self, random: Random) -> list[str]:
        """The queues of one machine, in any order."""
        machines = self.found(b"mSMQConfiguration")
        if not machines:
            return []
        above = name_of(random.choice(machines).name)
        names = [q.name for q in self.found(b"mSMQQueue") if name_of(q.name).parent == above]
        random.shuffle(names)
        return names

    def _delete_queue(self, random: Random) -> None:
        if name := self._queue(random):
            self._delete(name)

    def _remake_queue(self, random: Random) -> None:
        if name := self._queue(random):
            self._delete(name)
            self._make_queue(name)

    def _rename_queue(self, random: Random) -> None:
        name, leaf = self._queue(random), random.choice(_QUEUES)
        if name and not self._exists(f"CN={leaf},{name_of(name).parent}"):
            self._rename(name, leaf)

    def _swap_queues(self, random: Random) -> None:
        self._swap(self._neighbours(random)[:2])

    def _swap(self, names: list[str]) -> None:
        if len(names) == 2:
            first, second = names
            between = f"between{self._next()}"
            self._rename(first, between)
            self._rename(second, name_of(first).leaf)
            self._rename(f"CN={between},{name_of(first).parent}", name_of(second).leaf)

    def _shift_queues(self, random: Random) -> None:
        names = self._neighbours(random)
        leaf = f"last{self._next()}"
        for name in names:
            self._rename(name, leaf)
            leaf = name_of(name).leaf

    def _label(self, random: Random) -> None:
        if name := self._queue(random):
            self._set(name, mSMQLabelEx=f"label {self._next()}".encode())

    def _spoil(self, random: Random) -> None:
        if name := self._queue(random):
            self._set(name, mSMQPrivacyLevel=b"9")

    def _spoil_key(self, random: Random) -> None:
        if name := self._computer(random):
            self._set(name, mSMQSignCertificates=_GARBLED)

    def _spoil_rights(self, random: Random) -> None:
        """Without its permissions an object is left out, and its queues with it."""
        machines = self.found(b"mSMQConfiguration")
        if found := random.choice([machines, machines, self.found(b"mSMQQueue")]):
            chosen = random.choice(found)
            self._set(chosen.name, nTSecurityDescriptor=_GARBLED)

    def _mend(self, _: Random) -> None:
        site = self.found(b"site")[0].values("nTSecurityDescriptor")
        for entry in self._domain.newest.entries:
            if entry.values("isDeleted"):
                continue
            if entry.values("mSMQPrivacyLevel") == (b"9",):
                self._set(entry.name, mSMQPrivacyLevel=b"1")
            if entry.values("mSMQSignCertificates") == (_GARBLED,):
                self._set(entry.name, mSMQSignCertificates=())
            if is_unreadable(entry):
                self._set(entry.name, nTSecurityDescriptor=site)

    # --- computers --------------------------------------------------------------------------------

    def _add_computer(self, random: Random) -> None:
        held = {name_of(e.name).leaf for e in self.found(b"computer")}
        if free := [name for name in _COMPUTERS if name not in held]:
            self._make_computer(f"CN={random.choice(free)},{random.choice(self._places)}", random)

    def _make_computer(self, name: str, random: Random) -> None:
        """A computer with queues; some route.

        Accounts have names of their own; of half of them the mirror may not read it, and takes the
        common name, which two computers may share.
        """
        number = self._next()
        account = {"sAMAccountName": f"account{number}$".encode()} if number % 2 else {}
        self._domain.put(
            name,
            objectClass=(b"top", b"user", b"computer"),
            **account,
            objectSid=Sid.parse(f"S-1-5-21-1-2-3-{number}").to_bytes(),
        )
        sites = self.found(b"site")
        chosen = random.sample(sites, random.randint(1, len(sites)))
        self._domain.put(
            f"CN=msmq,{name}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=[site.values("objectGUID")[0] for site in chosen],
            mSMQRoutingServices=random.choice((b"TRUE", b"FALSE")),
            mSMQOutRoutingServers=self._gates(random),
        )
        for leaf in random.sample(_QUEUES, random.randint(0, 3)):
            self._make_queue(f"CN={leaf},CN=msmq,{name}")

    def _add_twin(self, random: Random) -> None:
        name = self._computer(random)
        twin = None if name is None else self._elsewhere(name)
        if twin is not None:
            self._make_computer(twin, random)

    def _elsewhere(self, name: str) -> str | None:
        """The name of a computer in the other place; None if one has it."""
        found = name_of(name)
        other = next(place for place in self._places if name_of(place) != found.parent)
        moved = f"CN={found.leaf},{other}"
        return None if self._exists(moved) else moved

    def _computer(self, random: Random) -> str | None:
        computers = self.found(b"computer")
        return random.choice(computers).name if computers else None

    def _delete_computer(self, random: Random) -> None:
        if name := self._computer(random):
            self._delete(name)

    def _delete_machine(self, random: Random) -> None:
        machines = self.found(b"mSMQConfiguration")
        if machines:
            self._delete(random.choice(machines).name)

    def _remake_computer(self, random: Random) -> None:
        if name := self._computer(random):
            self._delete(name)
            self._make_computer(name, random)

    def _rename_computer(self, random: Random) -> None:
        name, leaf = self._computer(random), random.choice(_COMPUTERS)
        if name and not self._exists(f"CN={leaf},{name_of(name).parent}"):
            self._rename(name, leaf)

    def _swap_computers(self, random: Random) -> None:
        place = random.choice(self._places)
        here = [e.name for e in self.found(b"computer") if name_of(e.name).parent == name_of(place)]
        self._swap(random.sample(here, min(2, len(here))))

    def _move_computer(self, random: Random) -> None:
        name = self._computer(random)
        moved = None if name is None else self._elsewhere(name)
        if name is not None and moved is not None:
            self._rename(name, name_of(name).leaf, str(name_of(moved).parent))

    def _resite(self, random: Random) -> None:
        machines, sites = self.found(b"mSMQConfiguration"), self.found(b"site")
        if machines:
            site = random.choice(sites).values("objectGUID")[0]
            self._set(random.choice(machines).name, mSMQSites=site)

    def _route(self, random: Random) -> None:
        if machines := self.found(b"mSMQConfiguration"):
            chosen = random.choice(machines).name
            self._set(chosen, mSMQOutRoutingServers=self._gates(random))

    # --- sites, links, users ----------------------------------------------------------------------

    def _add_site(self, random: Random) -> None:
        name = f"CN={random.choice(_SITES)},{self._sites}"
        if not self._exists(name):
            self._domain.put(name, objectClass=b"site")

    def _rename_site(self, random: Random) -> None:
        sites, leaf = self.found(b"site"), random.choice(_SITES)
        if not self._exists(f"CN={leaf},{self._sites}"):
            self._rename(random.choice(sites).name, leaf)

    def _delete_site(self, random: Random) -> None:
        """Links go with their site, and its machines move to another one."""
        sites = self.found(b"site")
        if len(sites) < 2:
            return
        gone, left = random.sample(sites, 2)
        for link in self.found(b"mSMQSiteLink"):
            if gone.name.encode() in (*link.values("mSMQSite1"), *link.values("mSMQSite2")):
                self._delete(link.name)
        for machine in self.found(b"mSMQConfiguration"):
            if gone.values("objectGUID")[0] in machine.values("mSMQSites"):
                self._set(machine.name, mSMQSites=left.values("objectGUID")[0])
        self._delete(gone.name)

    def _add_link(self, random: Random) -> None:
        sites = self.found(b"site")
        if len(sites) < 2:
            return
        first, second = random.sample(sites, 2)
        self._domain.put(
            f"CN=link{self._next()},{self._services}",
            objectClass=b"mSMQSiteLink",
            mSMQSite1=first.name.encode(),
            mSMQSite2=second.name.encode(),
            mSMQCost=b"%d" % random.randint(1, 9),
            mSMQSiteGates=self._gates(random),
        )

    def _gates(self, random: Random) -> tuple[bytes, ...]:
        """The names of some machines, for gates and for routing servers."""
        machines = [e.name.encode() for e in self.found(b"mSMQConfiguration")]
        return tuple(random.sample(machines, random.randint(0, min(2, len(machines)))))

    def _delete_link(self, random: Random) -> None:
        if links := self.found(b"mSMQSiteLink"):
            self._delete(random.choice(links).name)

    def _change_link(self, random: Random) -> None:
        if links := self.found(b"mSMQSiteLink"):
            cost = b"%d" % random.randint(1, 9)
            chosen = random.choice(links).name
            self._set(chosen, mSMQCost=cost, mSMQSiteGates=self._gates(random))

    def _add_user(self, random: Random) -> None:
        name = f"CN={random.choice(_USERS)},{self._users}"
        if not self._exists(name):
            number = self._next()
            self._domain.put(
                name,
                objectClass=(b"top", b"person", b"user"),
                objectCategory=b"person",
                sAMAccountName=f"account{number}".encode(),
                objectSid=Sid.parse(f"S-1-5-21-1-2-3-{number}").to_bytes(),
                mSMQDigests=b"%16d" % number,
            )

    def _people(self) -> list[SearchEntry]:
        return [e for e in self.found(b"person") if b"computer" not in e.values("objectClass")]

    def _delete_user(self, random: Random) -> None:
        if people := self._people():
            self._delete(random.choice(people).name)

    def _certify(self, random: Random) -> None:
        if people := self._people():
            chosen = random.choice(people)
            digests = () if chosen.values("mSMQDigests") else (b"%16d" % self._next(),)
            self._set(chosen.name, mSMQDigests=digests)

    # --- rights -----------------------------------------------------------------------------------

    def objects(self) -> list[Guid]:
        """Everything that a mirror copies, except sites: without them the account sees nothing."""
        kinds = b"mSMQQueue", b"mSMQConfiguration", b"mSMQSiteLink"
        found = [e for kind in kinds for e in self.found(kind)] + self._people()
        return [Guid(e.values("objectGUID")[0]) for e in found]


def is_unreadable(entry: SearchEntry) -> bool:
    """Returns whether the permissions of an entry were spoiled."""
    return entry.values("nTSecurityDescriptor") == (_GARBLED,)


def is_spoiled(entry: SearchEntry) -> bool:
    """Returns whether a value of an object was spoiled that it can do without."""
    return entry.values("mSMQPrivacyLevel") == (b"9",)
