"""The part of a forest that a source shows, and what follows from not finding something there.

Active Directory answers a search for an entry that the account may not see as it answers one for an
entry that does not exist. So a thing that is not found is gone only if it was looked for where it
would be, and the account can see that place:

- an object by its GUID: all domains of the forest were read, or the global catalogue was asked;
- an entry by its name: its domain answered that there is none, and the account sees entries below
  the nearest container above it that exists;
- a user by a SID: the domain that the SID is of was searched.

Everything else is unknown, and no repair follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile

from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName, ExtendedName

#: The octets of the last number of a SID, which tells the accounts of a domain apart.
_RID_OCTETS = 4
#: The account Guest: it has neither certificates nor service names, so no search for those finds
#: it. A dump with it has all users.
_GUEST = (501).to_bytes(_RID_OCTETS, "little")


def name_of(text: str) -> str:
    """Equal for two spellings of a distinguished name."""
    return str(ExtendedName.parse(text).name).casefold()


def parent_of(text: str) -> str:
    """The name of the entry above, as ``name_of`` spells it; empty for the root."""
    return str(ExtendedName.parse(text).name.parent).casefold()


def domain_of(text: str) -> str:
    """The domain that a name is in: its last parts, as far as they are DC."""
    parts = reversed(ExtendedName.parse(text).name.parts)
    found = list(takewhile(lambda part: part.attribute.lower() == "dc", parts))
    return str(DistinguishedName(tuple(reversed(found)))).casefold()


def sid_domain(sid: bytes) -> bytes:
    """The part of a SID that all accounts of a domain share; empty for one that has no such part.

    Only S-1-5-21-... are of domains. The count of numbers, which differs, is left out.
    """
    is_account = len(sid) == 28 and sid[2:12] == b"\0\0\0\0\0\x05\x15\0\0\0"
    return sid[2:-_RID_OCTETS] if is_account else b""


class SeenKind(Enum):
    MACHINE = "a queue manager"
    COMPUTER = "a computer"
    RECIPIENT = "a queue, an alias or a list"
    OTHER = "something else"


@dataclass(slots=True)
class EstateSight:
    """The entries, domains and users that a source shows."""

    #: The kind of each entry that was seen, queues aside.
    entries: dict[str, SeenKind] = field(default_factory=dict)
    #: Containers that the account sees entries in.
    listed: set[str] = field(default_factory=set)
    #: Entries that are there and could not be read.
    damaged: set[str] = field(default_factory=set)
    #: Names for which a server answered that there is no such entry.
    missing: set[str] = field(default_factory=set)
    #: The domains of the forest (crossRef entries); empty: the source does not tell.
    forest: set[str] = field(default_factory=set)
    #: The domains that were read.
    domains: set[str] = field(default_factory=set)
    #: The domains, by the common part of their SIDs, in which users were looked for.
    sid_domains: set[bytes] = field(default_factory=set)
    #: Queue managers and queues that the global catalogue has.
    ids: set[Guid] = field(default_factory=set)
    #: The global catalogue was asked for all that was not found.
    catalogue: bool = False
    #: The reason why it was not.
    no_catalogue: str = ""
    #: A store: there is nothing else to look at.
    everything: bool = False

    def see(self, name: str, kind: SeenKind) -> None:
        key = name_of(name)
        self.entries.setdefault(key, kind)
        self.listed.add(parent_of(key))

    def see_account(self, sid: bytes) -> None:
        if sid.endswith(_GUEST) and (domain := sid_domain(sid)):
            self.sid_domains.add(domain)

    def see_domain(self, name: str) -> None:
        """Takes note of a domain that was read."""
        self.see(name, SeenKind.OTHER)
        self.domains.add(name_of(name))

    def see_users(self, domain: bytes) -> None:
        """Takes note that users of a domain are looked for; the domain has a SID itself."""
        if found := sid_domain(domain + _GUEST):
            self.sid_domains.add(found)

    @property
    def unread(self) -> list[str]:
        """The domains of the forest that were not read."""
        return sorted(self.forest - self.domains)

    @property
    def is_whole(self) -> bool:
        """An object that was not found by its GUID is nowhere in the forest."""
        return self.everything or self.catalogue or (bool(self.forest) and not self.unread)

    def is_seen(self, name: str) -> bool:
        return name in self.entries and name not in self.damaged

    def kind_of(self, name: str) -> SeenKind | None:
        return self.entries.get(name) if self.is_seen(name) else None

    def is_gone(self, name: str) -> bool:
        """Returns whether an entry certainly does not exist; ``name`` as ``name_of`` spells it."""
        if self.everything:
            return True
        if name in self.entries or name in self.damaged:
            return False
        if name not in self.missing and domain_of(name) not in self.domains:
            return False
        above = parent_of(name)
        while above and above not in self.entries and above not in self.listed:
            if above in self.damaged:  # it is there, and shows nothing
                return False
            above = parent_of(above)
        return bool(above) and above in self.listed

    def is_hidden(self, name: str, *, exists: bool) -> bool:
        """Returns whether an entry was looked for and is not seen, although it may exist.

        ``exists``: it does, because it is the value of a link, which goes when its target goes.
        """
        if self.everything or self.is_seen(name):
            return False
        if not self.catalogue and domain_of(name) not in self.domains:
            return False
        return exists or not self.is_gone(name)

    def knows_users_of(self, sid: bytes) -> bool:
        return self.everything or sid_domain(sid) in self.sid_domains
