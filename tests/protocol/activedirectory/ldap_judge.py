"""A small LDAP server's idea of a filter (RFC 4511 4.5.1.7), written without the mapping's code."""

from __future__ import annotations

from typing import Any

from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.ldap.filters import (
    And,
    Equality,
    Filter,
    GreaterOrEqual,
    LessOrEqual,
    Not,
    Or,
    Present,
)

_SIGNED = {
    "msmqqueuequota", "msmqbasepriority", "msmqprivacylevel", "msmqcost", "msmqinterval1",
    "msmqinterval2",
}  # fmt: skip


def _key(attribute: str, value: bytes) -> Any:
    if attribute.lower() in _SIGNED:
        return int(value)
    try:
        return value.decode().casefold()
    except UnicodeDecodeError:
        return repr(value)


def matches(node: Filter, found: LdapEntry) -> bool:  # noqa: PLR0911
    """An item that concerns an absent attribute is undefined, which negates to true in AD."""
    match node:
        case And(items):
            return all(matches(item, found) for item in items)
        case Or(items):
            return any(matches(item, found) for item in items)
        case Not(item):
            return not matches(item, found)
        case Present(attribute):
            return bool(found.values(attribute))
        case Equality(attribute, value):
            return _key(attribute, value) in [_key(attribute, v) for v in found.values(attribute)]
        case GreaterOrEqual(attribute, value):
            return any(
                _key(attribute, v) >= _key(attribute, value) for v in found.values(attribute)
            )
        case LessOrEqual(attribute, value):
            return any(
                _key(attribute, v) <= _key(attribute, value) for v in found.values(attribute)
            )
    raise AssertionError(f"{node} is not used by the mapping")
