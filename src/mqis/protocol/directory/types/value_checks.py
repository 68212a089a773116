"""Checks of supplied values (MS-MQDS 3.1.4.21.8): each returns the value to store.

A check raises ``ValueError`` or ``WireError`` with the reason for which a value is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from mqis.protocol.directory.types.property_row import Check, PropertyRow
from mqis.protocol.directory.types.row_columns import ValueMeaning
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.machine_address import AddressList
from mqis.wire.propvariant import Value
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid


def check_of(row: PropertyRow) -> Check | None:
    """Returns the check of a property; None if every value of its variant type is stored."""
    if row.check is not None:
        return row.check
    return one_of(row.words) if row.words is not None else _BY_MEANING.get(row.meaning)


def refusal_of(row: PropertyRow) -> HResult:
    """Returns the code for a value that the check refuses."""
    return _CODES.get(row.meaning, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE)


def flag(value: Value) -> Value:
    """1 means true, anything else false."""
    return int(value == 1)


def one_of(known: Mapping[int, str]) -> Check:
    """Makes a check that accepts the numbers of ``known`` and names them in its refusal."""

    def check(value: Value) -> Value:
        if value not in known:
            meanings = ", ".join(f"{number} ({word})" for number, word in known.items())
            raise ValueError(f"{value!r} is none of {meanings}")
        return value

    return check


def _parsed(parse: Callable[[bytes], object]) -> Check:
    """Makes a check that keeps bytes as they are, if ``parse`` accepts them or there are none."""

    def check(value: Value) -> Value:
        if isinstance(value, bytes) and value:
            parse(value)
        return value

    return check


def _certificates(data: bytes) -> object:
    """Parses a list, or one bare certificate, which the event wraps with an identifier."""
    return UserSignCerts.from_property(data, Guid.NULL)


def _keys(data: bytes) -> None:
    """Parses every key now, so that one that nobody can read is refused before it is needed."""
    for key in PublicKeys.from_bytes(data).keys:
        key.rsa()


@lru_cache(maxsize=64)
def _descriptor(data: bytes) -> None:
    """Most objects have one of few descriptors, so that the last sound ones are remembered."""
    SecurityDescriptor.from_bytes(data)


_BY_MEANING: dict[ValueMeaning, Check] = {
    ValueMeaning.FLAG: flag,
    ValueMeaning.DESCRIPTOR: _parsed(_descriptor),
    ValueMeaning.SID: _parsed(Sid.from_bytes),
    ValueMeaning.KEYS: _parsed(_keys),
    ValueMeaning.CERTIFICATES: _parsed(_certificates),
    ValueMeaning.ADDRESSES: _parsed(AddressList.from_bytes),
}
#: Meanings whose refusals have a code of their own.
_CODES: dict[ValueMeaning, HResult] = {
    ValueMeaning.KEYS: HResult.MQ_ERROR_INVALID_PARAMETER,
    ValueMeaning.DESCRIPTOR: HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR,
}
