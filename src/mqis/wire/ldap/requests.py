"""The requests of a client (RFC 4511 4.2 to 4.12); those that change entries are in ``changes``.

Compare is left out: nothing here uses it. Each class has its tag, the layout above it, ``encode``
for the whole element, and ``decode`` for its contents, so that a server for tests can read what a
client sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import ClassVar, Final

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import APPLICATION, CONSTRUCTED, CONTEXT, BerReader
from mqis.wire.ldap.changes import EntryChange, RenameEntry
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filter_ber import decode_filter, encode_filter
from mqis.wire.ldap.filters import Filter, Present

_REQUEST: Final = APPLICATION | CONSTRUCTED
_VERSION: Final = 3
_SIMPLE: Final = CONTEXT
_SASL: Final = CONTEXT | CONSTRUCTED | 3
_REQUEST_NAME, _REQUEST_VALUE = CONTEXT, CONTEXT | 1

EVERYTHING: Final = Present("objectClass")


# BindRequest ::= [APPLICATION 0] SEQUENCE { version INTEGER, name LDAPDN,
#     authentication CHOICE { simple [0] OCTET STRING, sasl [3] SaslCredentials } }
@dataclass(frozen=True, slots=True)
class SimpleBind:
    """A name and a password in clear text."""

    name: str
    password: bytes = field(repr=False)

    TAG: ClassVar[int] = _REQUEST

    def encode(self) -> bytes:
        secret = ber.element(_SIMPLE, self.password)
        return ber.element(self.TAG, ber.integer(_VERSION), ber.text(self.name), secret)


@dataclass(frozen=True, slots=True)
class SaslBind:
    """One step of a security mechanism."""

    mechanism: str
    token: bytes | None = field(repr=False)
    name: str = ""

    TAG: ClassVar[int] = _REQUEST

    def encode(self) -> bytes:
        token = b"" if self.token is None else ber.octet_string(self.token)
        sasl = ber.element(_SASL, ber.text(self.mechanism), token)
        return ber.element(self.TAG, ber.integer(_VERSION), ber.text(self.name), sasl)


def decode_bind(reader: BerReader) -> SimpleBind | SaslBind:
    version = reader.integer("the version")
    if version != _VERSION:
        raise reader.error(f"version {version} of LDAP, not {_VERSION}")
    name = reader.text("the name of a bind")
    if reader.tag == _SIMPLE:
        return SimpleBind(name, reader.octets("a password", _SIMPLE))
    sasl = reader.enter("SASL credentials", _SASL)
    mechanism = sasl.text("a SASL mechanism")
    token = sasl.octets("a SASL token") if sasl.tag >= 0 else None
    sasl.expect_end("SASL credentials")
    return SaslBind(mechanism, token, name)


# UnbindRequest ::= [APPLICATION 2] NULL
@dataclass(frozen=True, slots=True)
class Unbind:
    """The end of the connection; it has no answer."""

    TAG: ClassVar[int] = APPLICATION | 2

    def encode(self) -> bytes:
        return ber.element(self.TAG, b"")

    @classmethod
    def decode(cls, reader: BerReader) -> Unbind:
        return cls()


# SearchRequest ::= [APPLICATION 3] SEQUENCE { baseObject LDAPDN, scope ENUMERATED,
#     derefAliases ENUMERATED, sizeLimit INTEGER, timeLimit INTEGER, typesOnly BOOLEAN,
#     filter Filter, attributes SEQUENCE OF LDAPString }
@dataclass(frozen=True, slots=True)
class SearchRequest:
    base: str
    scope: SearchScope = SearchScope.SUBTREE
    filter: Filter = EVERYTHING
    #: None given: all that are not operational.
    attributes: tuple[str, ...] = ()
    size_limit: int = 0
    time_limit_s: int = 0
    types_only: bool = False

    TAG: ClassVar[int] = _REQUEST | 3

    def encode(self) -> bytes:
        return ber.element(
            self.TAG,
            ber.text(self.base),
            ber.enumerated(self.scope),
            ber.enumerated(0),  # neverDerefAliases: Active Directory has none
            ber.integer(self.size_limit),
            ber.integer(self.time_limit_s),
            ber.boolean(self.types_only),
            encode_filter(self.filter),
            ber.sequence(*map(ber.text, self.attributes)),
        )

    @classmethod
    def decode(cls, reader: BerReader) -> SearchRequest:
        base, scope = reader.text("a base"), reader.integer("a scope", ber.ENUMERATED)
        if scope not in list(SearchScope):
            raise reader.error(f"{scope} is not a search scope")
        reader.integer("derefAliases", ber.ENUMERATED)
        sizes = reader.integer("sizeLimit"), reader.integer("timeLimit")
        types_only, node = reader.boolean("typesOnly"), decode_filter(reader)
        names, attributes = reader.enter("attributes"), []
        while names.tag >= 0:
            attributes.append(names.text("an attribute"))
        return cls(base, SearchScope(scope), node, tuple(attributes), *sizes, types_only)


# AbandonRequest ::= [APPLICATION 16] MessageID
@dataclass(frozen=True, slots=True)
class Abandon:
    """Tells the server to stop an operation. It has no answer, and the operation may have ended."""

    target: int

    TAG: ClassVar[int] = APPLICATION | 16

    def encode(self) -> bytes:
        return ber.integer(self.target, self.TAG)

    @classmethod
    def decode(cls, reader: BerReader) -> Abandon:
        return cls(reader.rest_integer("the id of an abandoned message"))


# ExtendedRequest ::= [APPLICATION 23] SEQUENCE { requestName [0] LDAPOID,
#     requestValue [1] OCTET STRING OPTIONAL }
@dataclass(frozen=True, slots=True)
class ExtendedRequest:
    name: str
    value: bytes | None = None

    TAG: ClassVar[int] = _REQUEST | 23

    def encode(self) -> bytes:
        value = b"" if self.value is None else ber.element(_REQUEST_VALUE, self.value)
        return ber.element(self.TAG, ber.text(self.name, _REQUEST_NAME), value)

    @classmethod
    def decode(cls, reader: BerReader) -> ExtendedRequest:
        name, value = reader.text("an operation", _REQUEST_NAME), None
        if reader.tag == _REQUEST_VALUE:
            value = reader.octets("the value of an operation", _REQUEST_VALUE)
        return cls(name, value)


#: Begins TLS on this connection (RFC 4511 4.14).
START_TLS: Final = "1.3.6.1.4.1.1466.20037"

LdapRequest = (
    SimpleBind
    | SaslBind
    | Unbind
    | SearchRequest
    | EntryChange
    | RenameEntry
    | Abandon
    | ExtendedRequest
)


_LENGTH: Final = Struct(">I")
#: Tokens are a little longer than the messages inside.
MAXIMUM_TOKEN: Final = 17 * 1024 * 1024


def frame(token: bytes) -> bytes:
    return _LENGTH.pack(len(token)) + token


class TokenStream:
    """Splits what arrives on a connection into tokens; no more than one is kept."""

    def __init__(self, limit: int = MAXIMUM_TOKEN) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._before = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the complete tokens out."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > self._limit:
                reason = f"a protected message of {size} bytes; at most {self._limit}"
                raise WireError(reason, self._before)
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                return
            token = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            self._before += end
            yield token
