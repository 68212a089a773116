"""A caller's Kerberos ticket: out of the token of a logon, into a cache of credentials.

The first token of a Kerberos logon is an AP-REQ (RFC 4120 5.5.1), bare in DCE style (MS-RPCE
2.2.1.1.7), else behind the mechanism's name (RFC 4121 4.1):

    60 .. 06 09 2A864886F712010202 01 00   InitialContextToken, Kerberos, KRB_AP_REQ
    6E .. 30 ..                            AP-REQ
        A0 03 02 01 05                     pvno
        A1 03 02 01 0E                     msg-type
        A2 07 03 05 00 ....                ap-options
        A3 ..  61 ..                       ticket, which is not looked into: it is encrypted
        A4 ..  30 ..                       authenticator

A cache keeps it as a credential of format 4, big-endian: client and server (name type, number of
components, realm, components: each counted by a u32), key (u16 type, counted octets), four times
(u32), u8 is_skey, u32 flags, counts of addresses and authorisation data, counted ticket and second
ticket.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from mqis.wire.ldap.ber import (
    APPLICATION,
    CONSTRUCTED,
    CONTEXT,
    INTEGER,
    SEQUENCE,
    BerReader,
    element,
)

_OID: Final = 0x06
_KERBEROS: Final = bytes.fromhex("2a864886f712010202")
_INITIAL: Final = APPLICATION | CONSTRUCTED
_AP_REQ: Final = APPLICATION | CONSTRUCTED | 14
_TICKET: Final = APPLICATION | CONSTRUCTED | 1
_KRB_AP_REQ: Final = b"\x01\x00"
_VERSION, _MESSAGE = 5, 14
_BIT_STRING: Final = 0x03

_COUNT: Final = Struct(">I")
_KEY: Final = Struct(">HI")
_TIMES: Final = Struct(">IIII")
_PRINCIPAL_NAME: Final = 1
_FORWARDABLE: Final = 0x4000_0000
#: AES-256. The key of a ticket that is only shown to a KDC is not used, but has to have a type.
_KEY_TYPE, _KEY_BYTES = 18, 32


def ticket_of(token: bytes) -> bytes:
    """The encoded ticket of the first token of a logon; ``WireError`` if it is no AP-REQ."""
    reader = BerReader(token)
    if reader.tag == _INITIAL:
        framed = reader.enter("InitialContextToken", _INITIAL)
        reader.expect_end("the token")
        if framed.octets("thisMech", _OID) != _KERBEROS:
            raise framed.error("it is not a token of Kerberos")
        if token[framed.offset : framed.offset + len(_KRB_AP_REQ)] != _KRB_AP_REQ:
            raise framed.error("it is not KRB_AP_REQ")
        reader = BerReader(token, framed.offset + len(_KRB_AP_REQ))
    request = reader.enter("AP-REQ", _AP_REQ)
    reader.expect_end("the token")
    fields = request.enter("AP-REQ")
    request.expect_end("AP-REQ")
    if _field(fields, 0, "pvno", INTEGER) != bytes((_VERSION,)):
        raise fields.error("it is not version 5 of Kerberos")
    if _field(fields, 1, "msg-type", INTEGER) != bytes((_MESSAGE,)):
        raise fields.error("it is not the message AP-REQ")
    _field(fields, 2, "ap-options", _BIT_STRING)
    ticket = element(_TICKET, _field(fields, 3, "Ticket", _TICKET))
    _field(fields, 4, "authenticator", SEQUENCE)
    fields.expect_end("AP-REQ")
    return ticket


def _field(fields: BerReader, number: int, what: str, tag: int) -> bytes:
    """The contents of a field, with nothing beside them that a library might read instead."""
    field = fields.enter(f"field {number}", CONTEXT | CONSTRUCTED | number)
    contents = field.octets(what, tag)
    field.expect_end(what)
    return contents


@dataclass(frozen=True, slots=True)
class KerberosName:
    """The name of a user or a service in a realm."""

    realm: bytes
    components: tuple[bytes, ...]

    def encode(self) -> bytes:
        parts = map(_counted, (self.realm, *self.components))
        head = _COUNT.pack(_PRINCIPAL_NAME) + _COUNT.pack(len(self.components))
        return head + b"".join(parts)


@dataclass(frozen=True, slots=True)
class ShownTicket:
    """A ticket of ``client`` that ``server`` shows a KDC, as a cache of credentials keeps it."""

    client: KerberosName
    server: KerberosName
    ticket: bytes
    #: Seconds since 1970.
    begins: int
    ends: int

    def encode(self) -> bytes:
        """A credential of format 4. Its key is not known, and nobody asks for it."""
        return b"".join(
            (
                self.client.encode(),
                self.server.encode(),
                _KEY.pack(_KEY_TYPE, _KEY_BYTES) + bytes(_KEY_BYTES),
                _TIMES.pack(self.begins, self.begins, self.ends, 0),
                b"\0" + _COUNT.pack(_FORWARDABLE),
                _COUNT.pack(0) * 2,
                _counted(self.ticket),
                _counted(b""),
            )
        )


def _counted(octets: bytes) -> bytes:
    return _COUNT.pack(len(octets)) + octets
