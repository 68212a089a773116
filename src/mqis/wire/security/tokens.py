"""The bound on logon tokens, and a walk over SPNEGO's, before a security provider parses them.

Anybody may send a token before a logon. Providers are libraries whose parsers take quadratic time
for some bytes: half a megabyte of mechanism identifiers took nine seconds. So a token has a limited
size, and everything in it that is counted is counted here first, in one pass (RFC 4178 4.2):

    60 ..                       InitialContextToken: thisMech, then the token of that mechanism
        A0 30                   NegTokenInit, if thisMech is SPNEGO
            A0 30 06 .. 06 ..   mechTypes
            A1 03               reqFlags
            A2 04               mechToken, which is not looked into
            A3 04 or A3 30      mechListMIC, or negHints (MS-SPNG 2.2.1); then A4 04 is the MIC
    A1 30                       NegTokenResp: negState, supportedMech, responseToken, mechListMIC
    4E 54 4C 4D ..              a message of NTLM without SPNEGO, which clients may send as well
"""

from __future__ import annotations

from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.ldap.ber import (
    APPLICATION,
    CONSTRUCTED,
    CONTEXT,
    ENUMERATED,
    OCTET_STRING,
    SEQUENCE,
    BerReader,
)

#: Bytes of a token. A Kerberos ticket with a large PAC has 48 kB, an NTLM message less than one.
MAX_TOKEN: Final = 65_536
#: Mechanisms that one token may offer; Windows offers five.
MAX_MECHANISMS: Final = 16
#: Bytes of an object identifier; those of mechanisms have about ten.
MAX_OID: Final = 32

_NTLMSSP: Final = b"NTLMSSP\0"
_SPNEGO: Final = bytes.fromhex("2b0601050502")
_OID, _BIT_STRING, _GENERAL_STRING = 0x06, 0x03, 0x1B
_INITIAL: Final = APPLICATION | CONSTRUCTED
_MOST_FLAGS, _MOST_STATE = 8, 4


def check_size(token: bytes) -> None:
    """Refuses a token that no mechanism needs."""
    if len(token) > MAX_TOKEN:
        raise WireError(f"a token of {len(token)} bytes; at most {MAX_TOKEN} are accepted", 0)


def check_spnego(token: bytes) -> None:
    """Refuses a token of SPNEGO that is too large, offers too much, or has another structure."""
    check_size(token)
    if token.startswith(_NTLMSSP):
        return
    reader = BerReader(token)
    if reader.tag == _INITIAL:
        reader = reader.enter("InitialContextToken", _INITIAL)
        if _oid(reader, "thisMech") != _SPNEGO:
            return  # the token of another mechanism, whose provider gets it as it is
    if reader.tag == _context(0):
        _check_init(reader.enter("NegotiationToken", _context(0)).enter("NegTokenInit"))
    else:
        _check_resp(reader.enter("NegotiationToken", _context(1)).enter("NegTokenResp"))


def _check_init(fields: BerReader) -> None:
    mechanisms = _field(fields, 0)
    if mechanisms is not None:
        _check_mechanisms(mechanisms.enter("mechTypes"))
    flags = _field(fields, 1)
    if flags is not None and len(flags.octets("reqFlags", _BIT_STRING)) > _MOST_FLAGS:
        raise flags.error("reqFlags is too long")
    _check_octets(fields, 2, "mechToken")
    third = _field(fields, 3)
    if third is not None and third.tag == SEQUENCE:
        hints = third.enter("negHints")
        name = _field(hints, 0)
        if name is not None:
            name.octets("hintName", _GENERAL_STRING)
        _check_octets(hints, 1, "hintAddress")
        hints.expect_end("negHints")
    elif third is not None:
        third.octets("mechListMIC")
    _check_octets(fields, 4, "mechListMIC")
    fields.expect_end("NegTokenInit")


def _check_mechanisms(offered: BerReader) -> None:
    count = 0
    while offered.tag >= 0:
        _oid(offered, "a mechanism")
        count += 1
        if count > MAX_MECHANISMS:
            raise offered.error(f"more than {MAX_MECHANISMS} mechanisms")


def _check_resp(fields: BerReader) -> None:
    state = _field(fields, 0)
    if state is not None and len(state.octets("negState", ENUMERATED)) > _MOST_STATE:
        raise state.error("negState is too long")
    mechanism = _field(fields, 1)
    if mechanism is not None:
        _oid(mechanism, "supportedMech")
    _check_octets(fields, 2, "responseToken")
    _check_octets(fields, 3, "mechListMIC")
    fields.expect_end("NegTokenResp")


def _context(number: int) -> int:
    return CONTEXT | CONSTRUCTED | number


def _field(fields: BerReader, number: int) -> BerReader | None:
    """Returns the contents of an optional field; they come in the order of their numbers."""
    tag = _context(number)
    return fields.enter(f"field {number}", tag) if fields.tag == tag else None


def _check_octets(fields: BerReader, number: int, what: str) -> None:
    field = _field(fields, number)
    if field is not None:
        field.octets(what, OCTET_STRING)


def _oid(reader: BerReader, what: str) -> bytes:
    octets = reader.octets(what, _OID)
    if len(octets) > MAX_OID:
        raise reader.error(f"{what} is an identifier of {len(octets)} bytes")
    return octets
