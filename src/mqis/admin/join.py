"""Becoming a member: the objects of a new server, its key, and what it has to know to start.

Everything goes through the PEC's directory service with an administrator's account. The new
server's site and machine are created there, with its public key; what comes back is who to believe
first. After that the directory tells of it, so it is a peer, and it gets its own directory by
replication. Doing it again changes nothing but a key that is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from time import sleep
from typing import Protocol

from mqis.protocol.directory.objects import name_key
from mqis.protocol.directory.service import Service, ServiceBits
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server import Role
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.node.members import Seed
from mqis.server.replication import key_list
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.address import AddressList, AddressType, TaAddress
from mqis.wire.mqds.keys import MqdsPublicKey, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop, props
from mqis.wire.propvariant import PropVariant

SITE, MACHINE = ObjectType.SITE, ObjectType.MACHINE
_BITS = {Role.PSC: ServiceBits.PSC, Role.BSC: ServiceBits.BSC}
#: What a server says of a name that it does not know.
_UNKNOWN = (
    HResult.MQDS_OBJECT_NOT_FOUND,
    HResult.MQ_ERROR_MACHINE_NOT_FOUND,
    HResult.E_ADS_PROPERTY_NOT_FOUND,
)


#: How often and when to look for what another server has made.
_LOOKS, _LOOK_S = 50, 0.2


class JoinError(MqisError):
    """A server cannot become a member: why, and what to do about it."""


class Found(Protocol):
    """An object as a directory server shows it."""

    @property
    def id(self) -> Guid: ...

    @property
    def values(self) -> Mapping[PropId, PropVariant | None]: ...


class Directory(Protocol):
    """What is asked of the PEC's directory service."""

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None: ...

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> Found: ...

    def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: dict[int, PropVariant],
        descriptor: bytes | None,
    ) -> Guid | None: ...

    def security(self, object_type: ObjectType, name: str, information: int) -> bytes: ...

    def set_security(
        self, object_type: ObjectType, name: str, information: int, data: bytes
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """The server that wants to become a member."""

    name: str
    role: Role
    site: str
    #: The machine name of the PEC.
    pec: str
    key: RsaPublicKey
    #: The IPv4 address that others find it at; empty: they know it from somewhere else.
    address: str = ""
    #: Whether it takes signed messages alone, and so needs the keys of those whom it believes.
    keys_required: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """What a member has to know before it has a directory."""

    enterprise: str
    id: Guid
    site_id: Guid
    psc: str
    seeds: tuple[Seed, ...]
    #: Addresses of seeds, as far as the directory has them.
    addresses: Mapping[str, str]


def join(directory: Directory, wanted: Wanted) -> Membership:
    """Make ``wanted`` a member; ``JoinError`` or ``DirectoryError`` if that cannot be."""
    enterprise = _enterprise(directory, wanted)
    pec, addresses = _seed(directory, wanted, wanted.pec)
    seeds = [pec]
    if wanted.role is Role.BSC:
        site, psc = _site_of_a_bsc(directory, wanted)
        if name_key(psc) != name_key(pec.name):
            seed, more = _seed(directory, wanted, psc)
            seeds.append(seed)
            addresses |= more
    else:
        site, psc = _site_of_a_psc(directory, wanted), wanted.name
    machine = _machine(directory, wanted, site)
    return Membership(enterprise, machine, site, psc, tuple(seeds), addresses)


def _enterprise(directory: Directory, wanted: Wanted) -> str:
    root = directory.get(ObjectType.ENTERPRISE, "-", [PropId.E_NAME, PropId.E_PECNAME])
    pec = _text(root, PropId.E_PECNAME)
    if name_key(pec) != name_key(wanted.pec):
        raise JoinError(f"--pec {wanted.pec}: the PEC of this enterprise is {pec or 'not named'}")
    return _text(root, PropId.E_NAME)


def _seed(directory: Directory, wanted: Wanted, name: str) -> tuple[Seed, dict[str, str]]:
    """A server, with its key and address if the directory has them."""
    found = _find(directory, MACHINE, name, [PropId.QM_ADDRESS])
    if found is None:
        raise JoinError(f"the directory has no machine {name}, so nobody can replicate from it")
    key = _key_of(directory, name)
    for _ in range(_LOOKS if wanted.keys_required and key is None else 0):
        sleep(_LOOK_S)  # a server that was just started publishes its key now
        key = _key_of(directory, name)
        if key is not None:
            break
    if key is None and wanted.keys_required:
        raise JoinError(
            f"{name} has no signing key in the directory, and this server would believe nothing "
            f"that it sends: start {name} once with a signing key, then join again"
        )
    address = _address(found)
    return Seed(name, found.id, key), {} if address is None else {name: address}


def _key_of(directory: Directory, name: str) -> RsaPublicKey | None:
    try:
        blob = directory.security(MACHINE, name, SecurityInformation.SIGN_PUBLIC_KEY)
    except DirectoryError as error:
        if error.hresult != HResult.MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST:
            raise
        return None
    return RsaPublicKey.from_bytes(blob)


def _address(machine: Found) -> str | None:
    value = machine.values.get(PropId.QM_ADDRESS)
    data = None if value is None else value.value
    try:
        listed = AddressList.from_bytes(data).addresses if isinstance(data, bytes) else ()
    except WireError:
        return None
    ips = (a.address for a in listed if a.address_type == AddressType.IP)
    return next((str(IPv4Address(ip)) for ip in ips), None)


# --- the site -------------------------------------------------------------------------------------


def _site_of_a_psc(directory: Directory, wanted: Wanted) -> Guid:
    """A new site with this server as its authority, or the one that it has already."""
    found = _find(directory, SITE, wanted.site, [PropId.S_PSC])
    if found is None:
        properties: dict[int, PropVariant] = props(
            {
                PropId.S_PSC: wanted.name,
                PropId.S_PSC_SIGNPK: key_list(wanted.key),
            }
        )
        created = directory.create(SITE, wanted.site, properties, None)
        found_id = created or directory.id_of(SITE, wanted.site)
        if found_id is None:
            raise JoinError(f"the site {wanted.site} was created, but cannot be found")
        return found_id
    psc = _text(found, PropId.S_PSC)
    if name_key(psc) != name_key(wanted.name):
        raise JoinError(
            f"site {wanted.site} has the PSC {psc or '(none)'}; name another site, or join it as "
            "a backup with --role bsc"
        )
    publish_key(directory, SITE, wanted.site, wanted.key)
    return found.id


def _site_of_a_bsc(directory: Directory, wanted: Wanted) -> tuple[Guid, str]:
    found = _find(directory, SITE, wanted.site, [PropId.S_PSC])
    if found is None:
        raise JoinError(f"--site {wanted.site}: there is no such site to be a backup in")
    psc = _text(found, PropId.S_PSC)
    if not psc:
        raise JoinError(f"--site {wanted.site}: the site has no PSC to replicate from")
    return found.id, psc


# --- the machine ----------------------------------------------------------------------------------


def _machine(directory: Directory, wanted: Wanted, site: Guid) -> Guid:
    found = _find(directory, MACHINE, wanted.name, [PropId.QM_SITE_ID, PropId.QM_SERVICE])
    if found is None:
        return _new_machine(directory, wanted, site)
    bits = found.values.get(PropId.QM_SERVICE)
    number = bits.value if bits is not None and isinstance(bits.value, int) else 0
    stands_in = found.values.get(PropId.QM_SITE_ID)
    if Service.from_bits(number).role is not _BITS[wanted.role]:
        raise JoinError(
            f"the directory has a machine {wanted.name}, but not as a {wanted.role.value}: delete "
            "it, or choose another --name"
        )
    if stands_in is None or stands_in.value != site:
        raise JoinError(f"machine {wanted.name} stands in another site than {wanted.site}")
    if wanted.role is Role.BSC:  # the machine of a PSC is its own to change, and it does
        publish_key(directory, MACHINE, wanted.name, wanted.key)
    return found.id


def _new_machine(directory: Directory, wanted: Wanted, site: Guid) -> Guid:
    """With its key: the PEC may change nothing of it once it is there, if it is a PSC."""
    properties: dict[int, PropVariant] = props(
        {
            PropId.QM_SITE_ID: site,
            PropId.QM_SERVICE: int(_BITS[wanted.role]),
            PropId.QM_SIGN_PKS: key_list(wanted.key),
        }
    )
    if wanted.address:
        addresses = AddressList((TaAddress.ip(wanted.address),))
        properties[PropId.QM_ADDRESS] = prop(PropId.QM_ADDRESS, addresses.to_bytes())
    try:
        created = directory.create(MACHINE, wanted.name, properties, None)
    except DirectoryError as error:
        if error.hresult != HResult.MQ_ERROR_MACHINE_EXISTS:
            raise
        created = None  # an earlier attempt made it, at a PSC that the PEC has not heard from yet
    found = created or _soon(directory, wanted.name)
    if found is None:
        raise JoinError(f"the machine {wanted.name} is there, but the PEC does not show it yet")
    return found


def _soon(directory: Directory, name: str) -> Guid | None:
    """The machine once it has come to the PEC."""
    for _ in range(_LOOKS):
        found = directory.id_of(MACHINE, name)
        if found is not None:
            return found
        sleep(_LOOK_S)
    return None


def publish_key(directory: Directory, kind: ObjectType, name: str, key: RsaPublicKey) -> None:
    """Tell a key that the directory does not have yet."""
    sign = SecurityInformation.SIGN_PUBLIC_KEY
    try:
        known = RsaPublicKey.from_bytes(directory.security(kind, name, sign))
    except (DirectoryError, WireError):
        known = None
    if known is None or (known.modulus, known.exponent) != (key.modulus, key.exponent):
        directory.set_security(kind, name, sign, MqdsPublicKey(key).to_bytes())


# --- reading --------------------------------------------------------------------------------------


def _find(
    directory: Directory, kind: ObjectType, name: str, chosen: Sequence[PropId]
) -> Found | None:
    try:
        return directory.get(kind, name, chosen)
    except DirectoryError as error:
        if error.hresult in _UNKNOWN:
            return None
        raise


def _text(found: Found, propid: PropId) -> str:
    value = found.values.get(propid)
    return value.value if value is not None and isinstance(value.value, str) else ""
