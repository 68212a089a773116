"""Joins an enterprise: creates the objects of a new server, and returns what it needs to start.

All calls go to the PEC's directory service, with an administrator's account. They create the new
server's site and machine, with its public key, and return the servers to trust first. From then on
it is a peer in the directory, and gets its own copy by replication. Repeating it changes nothing
except a new key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from time import sleep
from typing import Protocol

from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server_identity import Role
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.node.members import Seed
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.keys import MqdsPublicKey, RsaPublicKey, key_list
from mqis.wire.mqds.machine_address import AddressList, AddressType, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

SITE, MACHINE = ObjectType.SITE, ObjectType.MACHINE
_BITS = {Role.PSC: ServiceBits.PSC, Role.BSC: ServiceBits.BSC}
#: Errors by which a server says that it does not know a name.
_UNKNOWN = (
    HResult.MQDS_OBJECT_NOT_FOUND,
    HResult.MQ_ERROR_MACHINE_NOT_FOUND,
    HResult.E_ADS_PROPERTY_NOT_FOUND,
)


#: Attempts, and seconds between them, to see a change that another server has made.
_LOOKS, _LOOK_S = 50, 0.2


class FoundObject(Protocol):
    """An object as a directory server shows it."""

    @property
    def id(self) -> Guid: ...

    @property
    def values(self) -> Mapping[PropId, PropVariant | None]: ...


class Directory(Protocol):
    """The calls of the PEC's directory service that joining needs."""

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None: ...

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> FoundObject: ...

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
    """The server that is to become a member."""

    name: str
    role: Role
    site: str
    #: The machine name of the PEC.
    pec: str
    key: RsaPublicKey
    #: The IPv4 address to publish in the directory; empty: none.
    address: str = ""
    #: True if it accepts only signed messages, and so needs the keys of the servers it trusts.
    keys_required: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """The facts that a member needs before it has a directory."""

    enterprise: str
    id: Guid
    site_id: Guid
    psc: str
    seeds: tuple[Seed, ...]
    #: Addresses of seeds, as far as the directory has them.
    addresses: Mapping[str, str]


def join(directory: Directory, wanted: Wanted) -> Membership:
    """Makes ``wanted`` a member; raises ``MqisError`` or ``DirectoryError`` if that fails."""
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
    machine = _machine(directory, wanted, site, psc)
    return Membership(enterprise, machine, site, psc, tuple(seeds), addresses)


def _enterprise(directory: Directory, wanted: Wanted) -> str:
    root = directory.get(ObjectType.ENTERPRISE, "-", [PropId.E_NAME, PropId.E_PECNAME])
    pec = _text(root, PropId.E_PECNAME)
    if name_key(pec) != name_key(wanted.pec):
        raise MqisError(f"--pec {wanted.pec}: the PEC of this enterprise is {pec or 'not named'}")
    return _text(root, PropId.E_NAME)


def _seed(directory: Directory, wanted: Wanted, name: str) -> tuple[Seed, dict[str, str]]:
    """A server to trust, with its key and address if the directory has them."""
    found = _find(directory, MACHINE, name, [PropId.QM_ADDRESS])
    if found is None:
        raise MqisError(
            f"the directory has no machine {name}, so this server cannot replicate from it"
        )
    key = _key_of(directory, name)
    for _ in range(_LOOKS if wanted.keys_required and key is None else 0):
        sleep(_LOOK_S)  # a server that was just started publishes its key now
        key = _key_of(directory, name)
        if key is not None:
            break
    if key is None and wanted.keys_required:
        raise MqisError(
            f"{name} has no signing key in the directory, and this server would refuse all its "
            f"messages: start {name} once with a signing key, then join again"
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


def _address(machine: FoundObject) -> str | None:
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
    """Creates a site with this server as its PSC, or finds the one that it has already."""
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
            raise MqisError(f"the site {wanted.site} was created, but cannot be found")
        return found_id
    psc = _text(found, PropId.S_PSC)
    if name_key(psc) != name_key(wanted.name):
        raise MqisError(
            f"site {wanted.site} has the PSC {psc or '(none)'}; name another site, or join it as "
            "a backup with --role bsc"
        )
    publish_key(directory, SITE, wanted.site, wanted.key)
    return found.id


def _site_of_a_bsc(directory: Directory, wanted: Wanted) -> tuple[Guid, str]:
    found = _find(directory, SITE, wanted.site, [PropId.S_PSC])
    if found is None:
        raise MqisError(
            f"--site {wanted.site}: there is no such site; a backup joins an existing one"
        )
    psc = _text(found, PropId.S_PSC)
    if not psc:
        raise MqisError(f"--site {wanted.site}: the site has no PSC to replicate from")
    return found.id, psc


# --- the machine ----------------------------------------------------------------------------------


def _machine(directory: Directory, wanted: Wanted, site: Guid, psc: str) -> Guid:
    found = _find(directory, MACHINE, wanted.name, [PropId.QM_SITE_ID, PropId.QM_SERVICE])
    if found is None:
        return _new_machine(directory, wanted, site)
    bits = found.values.get(PropId.QM_SERVICE)
    number = bits.value if bits is not None and isinstance(bits.value, int) else 0
    stands_in = found.values.get(PropId.QM_SITE_ID)
    role = ServiceAttributes.from_bits(number).role
    if role is _BITS[Role.PSC] and name_key(psc) != name_key(wanted.name):
        raise DirectoryError(
            HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
            f"{psc} is the PSC of {wanted.site} now, and has not told the directory yet that "
            f"{wanted.name} is a backup; try again soon",
        )
    if role is not _BITS[wanted.role]:
        raise MqisError(
            f"the directory has a machine {wanted.name}, but not as a {wanted.role.value}: delete "
            "it, or choose another --name"
        )
    if stands_in is None or stands_in.value != site:
        raise MqisError(
            f"machine {wanted.name} belongs to another site than {wanted.site}; name that site"
        )
    if (
        wanted.role is Role.BSC
    ):  # a PSC is the authority for its own machine, and publishes the key itself
        publish_key(directory, MACHINE, wanted.name, wanted.key)
    return found.id


def _new_machine(directory: Directory, wanted: Wanted, site: Guid) -> Guid:
    """Creates the machine with its key: once it is a PSC's, the PEC cannot change it."""
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
        created = (
            None  # an earlier attempt made it, at a PSC whose change has not reached the PEC yet
        )
    found = created or _wait_for_machine(directory, wanted.name)
    if found is None:
        raise MqisError(
            f"the machine {wanted.name} exists, but has not reached the PEC yet; join again later"
        )
    return found


def _wait_for_machine(directory: Directory, name: str) -> Guid | None:
    """Waits until the machine has reached the PEC; None if it does not in time."""
    for _ in range(_LOOKS):
        found = directory.id_of(MACHINE, name)
        if found is not None:
            return found
        sleep(_LOOK_S)
    return None


def publish_key(directory: Directory, kind: ObjectType, name: str, key: RsaPublicKey) -> None:
    """Publishes a key in the directory, unless it is there already."""
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
) -> FoundObject | None:
    try:
        return directory.get(kind, name, chosen)
    except DirectoryError as error:
        if error.hresult in _UNKNOWN:
            return None
        raise


def _text(found: FoundObject, propid: PropId) -> str:
    value = found.values.get(propid)
    return value.value if value is not None and isinstance(value.value, str) else ""
