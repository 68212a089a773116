"""The access check (MS-DTYP 2.5.3.2) as far as MSMQ objects need it.

There is no object tree here, no central access policy and no integrity level. What remains is one
walk over the DACL, in which the first ACE that names a right decides it:

- ACCESS_SYSTEM_SECURITY comes from a privilege alone, WRITE_OWNER may come from one.
- The owner has READ_CONTROL and WRITE_DAC, whatever the list denies, unless an effective ACE for
  OWNER_RIGHTS takes the place of that rule.
- Without a DACL, NULL or absent, everything is granted. An empty one grants only the above.
- Inherit-only ACEs apply to other objects.
- An object ACE with an ObjectType is ignored, as its GUID is in no tree (2.4.4.3, 2.4.4.5). One
  without is about the object as a whole. The pseudocode does not see that case; the safe reading
  is to let it deny and not let it grant.
- A conditional ACE cannot be evaluated, so its result is UNKNOWN, and 2.4.4.17.3 says what
  follows: it grants nothing, but what it denies is denied. If a denying one cannot even be read,
  everything is denied from there on. The pseudocode has no case for the remaining types.
- Generic bits of an ACE are not mapped (2.4.3): ``map_descriptor`` does so when one is attached.

The pseudocode for MAXIMUM_ALLOWED forgets the owner's rights and the order of the list, against
its own overview, which promises the complete set of grantable rights. Here the answer is that set:
exactly the rights which, asked for one by one, are granted. Rights asked for along with it must be
among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mqis.protocol.security.masks import GenericMapping, Rights, map_descriptor
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import Ace, AceFlags, AceType, Acl, ObjectAce, OpaqueAce, PlainAce
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

_ALL_BITS = 0xFFFF_FFFF
# Plain numbers: arithmetic with an IntFlag gives another, which would show in results.
_ACCESS_SYSTEM_SECURITY = int(Rights.ACCESS_SYSTEM_SECURITY)
_MAXIMUM_ALLOWED = int(Rights.MAXIMUM_ALLOWED)
_WRITE_OWNER = int(Rights.WRITE_OWNER)
_OWNER_RIGHTS_MASK = int(Rights.READ_CONTROL | Rights.WRITE_DAC)
#: Rights that no ACE of a DACL can grant: the special ones and, unmapped, the generic ones.
_NEVER_FROM_ACE = int(
    Rights.ACCESS_SYSTEM_SECURITY
    | Rights.MAXIMUM_ALLOWED
    | Rights.GENERIC_ALL
    | Rights.GENERIC_EXECUTE
    | Rights.GENERIC_WRITE
    | Rights.GENERIC_READ
)


@dataclass(frozen=True, slots=True)
class Token:
    """The caller (2.5.2): account, groups, and the two privileges that the check considers."""

    user: Sid | None
    groups: frozenset[Sid] = frozenset()
    security_privilege: bool = False
    take_ownership_privilege: bool = False

    @classmethod
    def authenticated(cls, user: Sid, groups: Iterable[Sid] = ()) -> Token:
        """A caller from the network whose identity was proven."""
        implied = (well_known.EVERYONE, well_known.AUTHENTICATED_USERS, well_known.NETWORK)
        return cls(user, frozenset((*groups, *implied)))

    @classmethod
    def anonymous(cls, *, in_everyone: bool = False) -> Token:
        """An anonymous caller. By policy, Everyone may include anonymous users or not."""
        everyone = (well_known.EVERYONE,) if in_everyone else ()
        return cls(well_known.ANONYMOUS, frozenset((*everyone, well_known.NETWORK)))

    def holds(self, sid: Sid | None) -> bool:
        return sid is not None and (sid == self.user or sid in self.groups)


class AccessReason(Enum):
    """The reason for the result of an access check."""

    GRANTED = "granted"
    NO_DACL = "granted, nothing restricts access"
    DENIED_BY_ACE = "denied by an entry of the list"
    NOT_GRANTED = "granted by no entry of the list"
    PRIVILEGE_MISSING = "needs a privilege that the caller does not hold"


@dataclass(frozen=True, slots=True)
class AccessResult:
    """The result of an access check: all rights asked for are granted, or none."""

    granted: int
    denied: int
    reason: AccessReason
    #: The index in the DACL of the ACE that denied.
    ace: int | None = None

    def __bool__(self) -> bool:
        return self.reason in (AccessReason.GRANTED, AccessReason.NO_DACL)


def access_check(
    sd: SecurityDescriptor,
    token: Token,
    desired: int,
    mapping: GenericMapping,
    principal_self: Sid | None = None,
) -> AccessResult:
    """Checks whether ``token`` has the rights ``desired`` on the object that ``sd`` protects.

    ``principal_self`` stands for PRINCIPAL_SELF in an ACE, where the object is a principal.
    """
    request = mapping.map(desired)
    system_security = request & _ACCESS_SYSTEM_SECURITY
    if system_security and not token.security_privilege:
        return AccessResult(0, system_security, AccessReason.PRIVILEGE_MISSING)
    maximum = bool(request & _MAXIMUM_ALLOWED)
    wanted = request & ~_MAXIMUM_ALLOWED
    if sd.dacl is None:
        return AccessResult(wanted | (mapping.all if maximum else 0), 0, AccessReason.NO_DACL)

    walk = _Walk(sd.owner, token, principal_self)
    walk.allowed = system_security
    if token.take_ownership_privilege:
        walk.allowed |= wanted & _WRITE_OWNER
    walk.apply(sd.dacl)
    missing = wanted & ~walk.allowed
    if missing:
        return walk.refusal(missing)
    granted = walk.allowed if maximum else wanted
    if maximum and not granted:
        return AccessResult(0, _MAXIMUM_ALLOWED, AccessReason.NOT_GRANTED)
    return AccessResult(granted, 0, AccessReason.GRANTED)


def anonymous_rights(sd: SecurityDescriptor, mapping: GenericMapping) -> int:
    """The rights of anonymous users, by a descriptor as it came, where Everyone includes them."""
    token = Token.anonymous(in_everyone=True)
    return access_check(map_descriptor(sd, mapping), token, _MAXIMUM_ALLOWED, mapping).granted


class _Walk:
    """The rights decided so far. A right once allowed stays allowed, whatever is refused later."""

    __slots__ = (
        "_is_owner",
        "_principal_self",
        "_refusals",
        "_refused",
        "_token",
        "allowed",
    )

    def __init__(self, owner: Sid | None, token: Token, principal_self: Sid | None) -> None:
        self._token = token
        self._principal_self = principal_self
        self._is_owner = token.holds(owner)
        self._refused = 0
        self._refusals: list[tuple[int, int]] = []
        self.allowed = 0

    def apply(self, dacl: Acl) -> None:
        effective = [
            (index, ace)
            for index, ace in enumerate(dacl.aces)
            if not ace.flags & AceFlags.INHERIT_ONLY
        ]
        if self._is_owner and not any(_is_for_owner_rights(ace) for _, ace in effective):
            self.allowed |= _OWNER_RIGHTS_MASK
        for index, ace in effective:
            if isinstance(ace, OpaqueAce):
                self._conditional(index, ace)
            elif self._applies_to(ace.sid):
                self._decide(index, ace)

    def refusal(self, missing: int) -> AccessResult:
        for index, bits in self._refusals:
            if bits & missing:
                return AccessResult(0, missing, AccessReason.DENIED_BY_ACE, index)
        return AccessResult(0, missing, AccessReason.NOT_GRANTED)

    def _applies_to(self, sid: Sid) -> bool:
        """SidInToken (2.5.3.1.1), and OWNER_RIGHTS, which stands for the object's owner."""
        if sid == well_known.OWNER_RIGHTS:
            return self._is_owner
        if sid == well_known.PRINCIPAL_SELF:
            return self._token.holds(self._principal_self)
        return self._token.holds(sid)

    def _decide(self, index: int, ace: PlainAce | ObjectAce) -> None:
        if ace.type is AceType.ACCESS_ALLOWED:
            self.allowed |= ace.mask & ~_NEVER_FROM_ACE & ~self._refused
        elif ace.type is AceType.ACCESS_DENIED or (
            ace.type is AceType.ACCESS_DENIED_OBJECT
            and isinstance(ace, ObjectAce)
            and ace.object_type is None
        ):
            self._refuse(index, ace.mask)

    def _conditional(self, index: int, ace: OpaqueAce) -> None:
        if ace.type not in (
            AceType.ACCESS_DENIED_CALLBACK,
            AceType.ACCESS_DENIED_CALLBACK_OBJECT,
        ):
            return
        readable = ace.unconditional()
        if readable is None:
            self._refuse(index, _ALL_BITS)
        elif self._applies_to(readable.sid):
            self._decide(index, readable)

    def _refuse(self, index: int, mask: int) -> None:
        self._refused |= mask
        self._refusals.append((index, mask))


def _is_for_owner_rights(ace: Ace) -> bool:
    """True also of a conditional ACE: as it might apply, the owner gets no implicit rights."""
    known = ace.unconditional() if isinstance(ace, OpaqueAce) else ace
    return known is not None and known.sid == well_known.OWNER_RIGHTS
