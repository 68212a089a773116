"""The requests of a client (RFC 4511 4.2 to 4.12). Compare is left out: nothing here uses it.

Each class has its tag, the layout above it, ``encode`` for the whole element, and ``decode`` for
its contents, so that a server for tests can read what a client sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import APPLICATION, CONSTRUCTED, CONTEXT, SET, BerReader
from mqis.wire.ldap.codes import ModifyOperation, SearchScope
from mqis.wire.ldap.filter_ber import decode_filter, encode_filter
from mqis.wire.ldap.filters import Filter, Present

_REQUEST: Final = APPLICATION | CONSTRUCTED
_VERSION: Final = 3
_SIMPLE: Final = CONTEXT
_SASL: Final = CONTEXT | CONSTRUCTED | 3
_NEW_SUPERIOR: Final = CONTEXT
_REQUEST_NAME, _REQUEST_VALUE = CONTEXT, CONTEXT | 1

#: The values of one attribute, or of many.
Values = tuple[bytes, ...]
AttributeRows = tuple[tuple[str, Values], ...]

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


# ModifyRequest ::= [APPLICATION 6] SEQUENCE { object LDAPDN, changes SEQUENCE OF SEQUENCE {
#     operation ENUMERATED, modification PartialAttribute } }
@dataclass(frozen=True, slots=True)
class Modification:
    """The change of one attribute."""

    operation: ModifyOperation
    attribute: str
    values: Values = ()

    def encode(self) -> bytes:
        change = encode_attribute(self.attribute, self.values)
        return ber.sequence(ber.enumerated(self.operation), change)

    @classmethod
    def decode(cls, reader: BerReader) -> Modification:
        operation = reader.integer("the operation of a change", ber.ENUMERATED)
        if operation not in list(ModifyOperation):
            raise reader.error(f"{operation} is not an operation of a change")
        return cls(ModifyOperation(operation), *decode_attribute(reader))


@dataclass(frozen=True, slots=True)
class ModifyRequest:
    name: str
    changes: tuple[Modification, ...]

    TAG: ClassVar[int] = _REQUEST | 6

    def encode(self) -> bytes:
        changes = ber.sequence(*(change.encode() for change in self.changes))
        return ber.element(self.TAG, ber.text(self.name), changes)

    @classmethod
    def decode(cls, reader: BerReader) -> ModifyRequest:
        name, rows, changes = reader.text("a name"), reader.enter("changes"), []
        while rows.tag >= 0:
            row = rows.enter("a change")
            changes.append(Modification.decode(row))
            row.expect_end("a change")
        return cls(name, tuple(changes))


# AddRequest ::= [APPLICATION 8] SEQUENCE { entry LDAPDN, attributes SEQUENCE OF Attribute }
@dataclass(frozen=True, slots=True)
class AddRequest:
    name: str
    attributes: AttributeRows

    TAG: ClassVar[int] = _REQUEST | 8

    def encode(self) -> bytes:
        return ber.element(self.TAG, ber.text(self.name), encode_attributes(self.attributes))

    @classmethod
    def decode(cls, reader: BerReader) -> AddRequest:
        return cls(reader.text("a name"), decode_attributes(reader))


# DelRequest ::= [APPLICATION 10] LDAPDN
@dataclass(frozen=True, slots=True)
class DeleteRequest:
    name: str

    TAG: ClassVar[int] = APPLICATION | 10

    def encode(self) -> bytes:
        return ber.text(self.name, self.TAG)

    @classmethod
    def decode(cls, reader: BerReader) -> DeleteRequest:
        return cls(reader.rest_text("a name"))


# ModifyDNRequest ::= [APPLICATION 12] SEQUENCE { entry LDAPDN, newrdn RelativeLDAPDN,
#     deleteoldrdn BOOLEAN, newSuperior [0] LDAPDN OPTIONAL }
@dataclass(frozen=True, slots=True)
class RenameRequest:
    """ModifyDNRequest: another name, or another place if ``parent`` is given."""

    name: str
    new_leaf: str
    delete_old_leaf: bool = True
    parent: str | None = None

    TAG: ClassVar[int] = _REQUEST | 12

    def encode(self) -> bytes:
        return ber.element(
            self.TAG,
            ber.text(self.name),
            ber.text(self.new_leaf),
            ber.boolean(self.delete_old_leaf),
            b"" if self.parent is None else ber.text(self.parent, _NEW_SUPERIOR),
        )

    @classmethod
    def decode(cls, reader: BerReader) -> RenameRequest:
        names = reader.text("a name"), reader.text("a new name")
        delete_old_leaf, parent = reader.boolean("deleteoldrdn"), None
        if reader.tag == _NEW_SUPERIOR:
            parent = reader.text("a new parent", _NEW_SUPERIOR)
        return cls(*names, delete_old_leaf, parent)


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
    | ModifyRequest
    | AddRequest
    | DeleteRequest
    | RenameRequest
    | Abandon
    | ExtendedRequest
)


# PartialAttribute ::= SEQUENCE { type AttributeDescription, vals SET OF OCTET STRING }
def encode_attribute(name: str, values: Values) -> bytes:
    return ber.sequence(ber.text(name), ber.element(SET, *map(ber.octet_string, values)))


def decode_attribute(reader: BerReader) -> tuple[str, Values]:
    row = reader.enter("an attribute")
    name, found, values = row.text("the name of an attribute"), row.enter("values", SET), []
    while found.tag >= 0:
        values.append(found.octets("a value"))
    row.expect_end("an attribute")
    return name, tuple(values)


def encode_attributes(rows: AttributeRows) -> bytes:
    return ber.sequence(*(encode_attribute(name, values) for name, values in rows))


def decode_attributes(reader: BerReader) -> AttributeRows:
    rows, found = reader.enter("attributes"), []
    while rows.tag >= 0:
        found.append(decode_attribute(rows))
    return tuple(found)
