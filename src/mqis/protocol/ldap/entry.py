"""An entry as a search returned it: its name, and attributes whose names have no case."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mqis.protocol.errors import ProtocolError
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.attributes import AttributeRows
from mqis.wire.ldap.names import DistinguishedName, without_identifiers


class BadAttribute(ProtocolError):
    """A value of an entry does not fit its attribute, or one that is needed is missing."""

    def __init__(self, entry: str, attribute: str, reason: str) -> None:
        super().__init__(f"{entry or 'the root entry'}: {attribute}: {reason}")
        self.attribute = attribute
        self.reason = reason

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str]]:
        return ProtocolError, (str(self),)


@lru_cache(maxsize=16)
def _parsed(name: str) -> DistinguishedName:
    """Several properties of an object are made of its name."""
    return DistinguishedName.parse(without_identifiers(name))


@dataclass(frozen=True, slots=True)
class LdapEntry:
    """``name`` may carry a GUID, if the extended-DN control was sent."""

    name: str
    attributes: AttributeRows
    _by_name: dict[str, tuple[bytes, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {name.lower(): values for name, values in self.attributes}
        if len(by_name) < len(self.attributes):  # an attribute stands there twice
            by_name = dict.fromkeys(by_name, ())
            for name, values in self.attributes:
                by_name[name.lower()] += values
        object.__setattr__(self, "_by_name", by_name)

    def values(self, attribute: str) -> tuple[bytes, ...]:
        return self._by_name.get(attribute.lower(), ())

    def text(self, attribute: str) -> str:
        """The first value as text; empty if there is none."""
        values = self.values(attribute)
        try:
            return values[0].decode() if values else ""
        except UnicodeDecodeError as error:
            raise BadAttribute(self.name, attribute, "is not UTF-8") from error

    @property
    def distinguished_name(self) -> DistinguishedName:
        return _parsed(self.name)

    @property
    def plain_name(self) -> str:
        """The name without the GUID that the extended-DN control puts before it."""
        try:
            return str(self.distinguished_name)
        except WireError:
            return self.name

    @property
    def guid(self) -> Guid | None:
        values = self.values("objectGUID")
        return Guid(values[0]) if values and len(values[0]) == 16 else None

    def is_of(self, ldap_class: str) -> bool:
        """Returns whether the entry is of a class, which it names with all its superclasses."""
        wanted = ldap_class.lower().encode()
        return any(value.lower() == wanted for value in self.values("objectClass"))
