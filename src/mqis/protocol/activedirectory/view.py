"""Everything that the properties of one object are made of: its entry and those around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName, ExtendedName

NameKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class References:
    """Names and identifiers of other entries, as far as they were read."""

    names: Mapping[Guid, DistinguishedName] = field(default_factory=dict)
    _guids: Mapping[NameKey, Guid] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_guids", {name.key: guid for guid, name in self.names.items()})

    def guid_of(self, value: bytes) -> Guid | None:
        """The identifier of a name; None for one that is deleted or was not found.

        The extended-DN control brings the identifier along, of deleted entries too.
        """
        found = ExtendedName.parse(value.decode())
        if found.is_deleted:
            return None
        return found.guid or self._guids.get(found.name.key)


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry with what its properties need from elsewhere."""

    entry: LdapEntry
    forest: Forest
    #: Of a machine or a queue: the entry of the computer, if a property needs it.
    computer: LdapEntry | None = None
    references: References = field(default_factory=References)
    #: Of a site: the gates of its links that are its members (3.1.6.20.4).
    gates: tuple[Guid, ...] = ()

    @property
    def name(self) -> DistinguishedName:
        try:
            return self.entry.distinguished_name
        except WireError as error:
            raise BadAttribute(self.entry.name, "distinguishedName", str(error)) from error

    def computer_values(self, attribute: str) -> tuple[bytes, ...]:
        return () if self.computer is None else self.computer.values(attribute)
