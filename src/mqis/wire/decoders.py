"""All structures that ``mqis decode`` can read. A new protocol adds a line to ``DECODERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from mqis.wire.cmp.boxcar import Boxcar, Remainder
from mqis.wire.cmp.packet import MsgTag
from mqis.wire.cmpo.ixnremote import IXN_REMOTE
from mqis.wire.errors import WireError
from mqis.wire.hresult import is_failure, meaning_of, name_of
from mqis.wire.ldap.changes import EntryChange
from mqis.wire.ldap.ldif import read_ldif
from mqis.wire.ldap.messages import LdapMessage, MessageStream
from mqis.wire.mqcn.notification_message import decode_notification
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.dscomm import DSCOMM
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.mqds.keys import MqdsPublicKey, PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.machine_address import AddressList
from mqis.wire.mqds.serverlist import ServerList, ServerSpec, parse_server_specs
from mqis.wire.mqdsrp.messages import decode_message
from mqis.wire.mqqb.packet import decode_packet
from mqis.wire.mqsd.discovery_packet import decode_packet as decode_discovery
from mqis.wire.ndr import Syntax
from mqis.wire.propertybag import decode_properties
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from mqis.wire.rpc.interfaces import InterfaceDescription
from mqis.wire.rpc.pdu import Body, Pdu, decode_pdu
from mqis.wire.rpc.pdu_bodies import Request
from mqis.wire.rpc.pdu_header import HEADER_SIZE, Header, PacketType, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import to_sddl
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamedDecoder:
    """A decoder: its name for ``--protocol``, its line in the list, and its function.

    ``decode`` consumes all bytes or raises ``WireError``.
    """

    name: str
    summary: str
    decode: Callable[[bytes], object]


def whole(decode: Callable[[Reader], T], what: str) -> Callable[[bytes], T]:
    """Wraps a structure's ``decode`` so that it refuses bytes after the structure."""

    def decode_all(data: bytes) -> T:
        reader = Reader(data)
        value = decode(reader)
        reader.expect_end(what)
        return value

    return decode_all


# --- structures with a text form beside their fields ----------------------------------------------


@dataclass(frozen=True, slots=True)
class HResultMeaning:
    code: str
    name: str
    meaning: str
    failure: bool


def _hresult(reader: Reader) -> HResultMeaning:
    code = reader.u32()
    return HResultMeaning(f"0x{code:08X}", name_of(code), meaning_of(code), is_failure(code))


@dataclass(frozen=True, slots=True)
class DescriptorText:
    """A security descriptor and its SDDL text, if it has one."""

    sddl: str | None
    descriptor: SecurityDescriptor


def _descriptor(data: bytes) -> DescriptorText:
    descriptor = SecurityDescriptor.from_bytes(data)
    try:
        return DescriptorText(to_sddl(descriptor), descriptor)
    except ValueError:  # an ACE of a type that SDDL cannot express
        return DescriptorText(None, descriptor)


@dataclass(frozen=True, slots=True)
class KeyOfProvider:
    """One entry of a list of public keys; ``rsa`` is None if the blob is not an RSA key."""

    provider_name: str
    provider_type: int
    rsa: RsaPublicKey | None
    blob: bytes

    @classmethod
    def of(cls, key: PublicKey) -> KeyOfProvider:
        try:
            rsa = key.rsa()
        except WireError:
            rsa = None
        return cls(key.provider_name, key.provider_type, rsa, key.blob)


def _public_keys(data: bytes) -> tuple[KeyOfProvider, ...]:
    return tuple(KeyOfProvider.of(key) for key in PublicKeys.from_bytes(data).keys)


@dataclass(frozen=True, slots=True)
class AddressText:
    """An address and its text form."""

    text: str
    address_type: int
    address: bytes


def _addresses(data: bytes) -> tuple[AddressText, ...]:
    found = AddressList.from_bytes(data).addresses
    return tuple(AddressText(str(a), a.address_type, a.address) for a in found)


def _properties(data: bytes) -> dict[str, PropVariant]:
    """Decodes properties; the keys are specification names, or numbers where unknown."""
    found = decode_properties(data)
    return {PROPERTIES[p].name if p in PROPERTIES else str(p): v for p, v in found.items()}


def _server_list(data: bytes) -> ServerList | tuple[ServerSpec, ...]:
    """Decodes a server list, with or without its site: UTF-16LE or ASCII, the zero is optional."""
    wide = data[1:2] == b"\0"
    encoding, unit = ("utf-16-le", 2) if wide else ("ascii", 1)
    try:
        text = data.decode(encoding).removesuffix("\0")
    except UnicodeDecodeError as error:
        raise WireError(f"not text: {error.reason}", error.start) from None
    try:
        return ServerList.parse(text) if ";" in text else parse_server_specs(text)
    except WireError as error:  # its offset counts characters
        raise WireError(error.reason, error.offset * unit) from None


@dataclass(frozen=True, slots=True)
class PacketText:
    """A message of a boxcar, with its tag by name."""

    tag: str
    is_master: int
    connection_id: int
    user_msg_type: str
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class BoxcarText:
    """A boxcar in text form; ``dropped`` is the part that a receiver ignores, with the reason."""

    packets: tuple[PacketText, ...]
    dropped: Remainder | None


def _boxcar(data: bytes) -> BoxcarText:
    boxcar = Boxcar.from_bytes(data)
    return BoxcarText(
        tuple(
            PacketText(MsgTag(p.tag).name, *p[1:3], f"0x{p.user_msg_type:08X}", p.data)
            for p in boxcar.packets
        ),
        boxcar.remainder,
    )


# --- RPC ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PduText:
    """A PDU without redundant fields. ``call`` is the decoded stub, if it was asked for."""

    type: str
    flags: tuple[str, ...]
    call_id: int
    byte_order: str
    frag_length: int
    auth_length: int
    body: Body
    auth: AuthTrailer | None
    operation: str | None = None
    call: object = None


_FLAGS = (
    (PfcFlags.FIRST, "FIRST"),
    (PfcFlags.LAST, "LAST"),
    (PfcFlags.CONC_MPX, "CONC_MPX"),
    (PfcFlags.DID_NOT_EXECUTE, "DID_NOT_EXECUTE"),
    (PfcFlags.MAYBE, "MAYBE"),
    (PfcFlags.OBJECT_UUID, "OBJECT_UUID"),
)
#: The packet types in which bit 04 is about header signing; in others it is about cancelling.
_BINDING = (
    PacketType.BIND,
    PacketType.BIND_ACK,
    PacketType.ALTER_CONTEXT,
    PacketType.ALTER_CONTEXT_RESP,
)


#: RPC_C_AUTHN_LEVEL_PKT_PRIVACY (MS-RPCE 2.2.1.1.8)
_PRIVACY = 6


def _pdus(data: bytes) -> tuple[PduText, ...]:
    """Decodes the consecutive PDUs of a piece of a connection."""
    return tuple(_pdu_text(pdu) for pdu in _split_pdus(data))


def _split_pdus(data: bytes) -> Iterator[Pdu]:
    at = 0
    while at < len(data) or not at:
        try:
            size = max(Header.decode(data[at:]).frag_length, HEADER_SIZE)
            yield decode_pdu(data[at : at + size])
        except WireError as error:
            raise WireError(error.reason, at + error.offset) from None
        at += size


def _pdu_text(pdu: Pdu) -> PduText:
    header = pdu.header
    bit04 = "SUPPORT_HEADER_SIGN" if header.type in _BINDING else "PENDING_CANCEL"
    names = [*_FLAGS, (PfcFlags.SUPPORT_HEADER_SIGN, bit04)]
    return PduText(
        PacketType(header.type).name,
        tuple(name for bit, name in names if header.flags & bit),
        header.call_id,
        "big" if header.big_endian else "little",
        header.frag_length,
        header.auth_length,
        pdu.body,
        pdu.auth,
    )


def _request_of(interface: InterfaceDescription) -> Callable[[bytes], PduText]:
    """Returns a decoder of one request PDU and its stub (NDR20, not encrypted, in one fragment)."""
    operations = {operation.opnum: operation for operation in interface.operations}

    def decode(data: bytes) -> PduText:
        pdu = decode_pdu(data)
        request = pdu.body
        if not isinstance(request, Request):
            raise WireError("this PDU is not a request; only requests name their operation", 2)
        operation = operations.get(request.opnum)
        if operation is None:
            raise WireError(f"{interface.name} has no operation {request.opnum}", 22)
        stub = request.stub
        if pdu.auth is not None:
            if pdu.auth.level == _PRIVACY:
                raise WireError("the stub is encrypted and cannot be decoded", pdu.stub_at)
            stub = stub[: max(0, len(stub) - pdu.auth.pad_length)]
        try:
            call = operation.request.decode(
                stub, Syntax.NDR20, big_endian=pdu.header.big_endian, allow_surplus=True
            )
        except WireError as error:
            raise WireError(error.reason, pdu.stub_at + error.offset) from None
        return replace(_pdu_text(pdu), operation=operation.name, call=call)

    return decode


# --- LDAP -----------------------------------------------------------------------------------------


def _ldap(data: bytes) -> tuple[LdapMessage, ...]:
    """Decodes the consecutive messages of a piece of a connection."""
    stream = MessageStream()
    stream.feed(data)
    found = tuple(message for message, _ in stream.messages())
    if stream.pending or not found:
        raise WireError("the last LDAP message is not complete", len(data))
    return found


def _ldif(data: bytes) -> tuple[EntryChange, ...]:
    return tuple(read_ldif(data.splitlines(keepends=True), "LDIF"))


DECODERS: tuple[NamedDecoder, ...] = (
    NamedDecoder("guid", "GUID, 16 bytes", whole(Reader.guid, "GUID")),
    NamedDecoder(
        "seqnum", "SEQUENCE_NUMBER, 8 bytes", whole(SequenceNumber.decode, "SEQUENCE_NUMBER")
    ),
    NamedDecoder("sid", "SID", Sid.from_bytes),
    NamedDecoder("descriptor", "SECURITY_DESCRIPTOR, self-relative", _descriptor),
    NamedDecoder("properties", "the properties of an object as stores keep them", _properties),
    NamedDecoder("publickeys", "MQDSPUBLICKEYS, PROPID_QM_ENCRYPT_PKS", _public_keys),
    NamedDecoder(
        "publickey", "MQDS_PublicKey, one key behind its length", MqdsPublicKey.from_bytes
    ),
    NamedDecoder("certificates", "MQUSERSIGNCERTS, PROPID_U_SIGN_CERT", UserSignCerts.from_bytes),
    NamedDecoder("addresses", "TA_ADDRESS list, PROPID_QM_ADDRESS", _addresses),
    NamedDecoder("hresult", "HRESULT, 4 bytes", whole(_hresult, "HRESULT")),
    NamedDecoder("serverlist", "server list as text", _server_list),
    NamedDecoder("mqdsrp", "replication message, MC-MQDSRP", decode_message),
    NamedDecoder("mqcn", "change notification, MS-MQCN", decode_notification),
    NamedDecoder("mqqb", "packet between queue managers, MS-MQQB", decode_packet),
    NamedDecoder("mqsd", "discovery request or reply, MS-MQSD", decode_discovery),
    NamedDecoder("cmp", "boxcar of connection messages, MS-CMP", _boxcar),
    NamedDecoder("rpc", "DCE/RPC PDUs of a connection", _pdus),
    NamedDecoder("dscomm", "request PDU of dscomm, with its stub", _request_of(DSCOMM)),
    NamedDecoder("dscomm2", "request PDU of dscomm2, with its stub", _request_of(DSCOMM2)),
    NamedDecoder("ixnremote", "request PDU of IXnRemote, with its stub", _request_of(IXN_REMOTE)),
    NamedDecoder("ldap", "LDAP messages of a connection", _ldap),
    NamedDecoder("ldif", "LDIF, entries of a directory as text", _ldif),
)
