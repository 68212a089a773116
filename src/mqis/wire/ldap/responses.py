"""The answers of a server (RFC 4511 4.1.9, 4.2.2, 4.5.2 to 4.12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeVar

from mqis.wire.ldap import ber
from mqis.wire.ldap.attributes import AttributeRows, Values, decode_attributes, encode_attributes
from mqis.wire.ldap.ber import APPLICATION, CONSTRUCTED, CONTEXT, BerReader
from mqis.wire.ldap.codes import ResultCode, code_name

_RESPONSE: Final = APPLICATION | CONSTRUCTED
_REFERRAL: Final = CONTEXT | CONSTRUCTED | 3
_SERVER_TOKEN: Final = CONTEXT | 7
_NAME, _VALUE = CONTEXT | 10, CONTEXT | 11


# LDAPResult ::= SEQUENCE { resultCode ENUMERATED, matchedDN LDAPDN, diagnosticMessage LDAPString,
#     referral [3] SEQUENCE OF URI OPTIONAL }
@dataclass(frozen=True, slots=True)
class LdapResult:
    """The outcome of an operation."""

    code: int = ResultCode.SUCCESS
    matched: str = ""
    diagnostic: str = ""
    referrals: tuple[str, ...] = ()

    def __str__(self) -> str:
        detail = self.diagnostic.rstrip("\0\n ")
        return f"{code_name(self.code)}: {detail}" if detail else code_name(self.code)

    def encode(self) -> bytes:
        referrals = b""
        if self.referrals:
            referrals = ber.element(_REFERRAL, *map(ber.text, self.referrals))
        parts = ber.enumerated(self.code), ber.text(self.matched), ber.text(self.diagnostic)
        return b"".join((*parts, referrals))

    @classmethod
    def decode(cls, reader: BerReader) -> LdapResult:
        code = reader.integer("a result code", ber.ENUMERATED)
        matched = reader.text("a matched name")
        # Windows sends messages in the language of the server, not always in UTF-8.
        diagnostic = reader.octets("a diagnostic message").decode(errors="replace")
        referrals: tuple[str, ...] = ()
        if reader.tag == _REFERRAL:
            referrals = _uris(reader.enter("referrals", _REFERRAL))
        return cls(code, matched, diagnostic, referrals)


def _uris(reader: BerReader) -> tuple[str, ...]:
    found = []
    while reader.tag >= 0:
        found.append(reader.text("a URI"))
    return tuple(found)


# BindResponse ::= [APPLICATION 1] SEQUENCE { COMPONENTS OF LDAPResult,
#     serverSaslCreds [7] OCTET STRING OPTIONAL }
@dataclass(frozen=True, slots=True)
class BindResponse:
    result: LdapResult
    token: bytes | None = field(default=None, repr=False)

    TAG: ClassVar[int] = _RESPONSE | 1

    def encode(self) -> bytes:
        token = b"" if self.token is None else ber.element(_SERVER_TOKEN, self.token)
        return ber.element(self.TAG, self.result.encode(), token)

    @classmethod
    def decode(cls, reader: BerReader) -> BindResponse:
        result, token = LdapResult.decode(reader), None
        if reader.tag == _SERVER_TOKEN:
            token = reader.octets("a token of the server", _SERVER_TOKEN)
        return cls(result, token)


# SearchResultEntry ::= [APPLICATION 4] SEQUENCE { objectName LDAPDN, attributes SEQUENCE OF
#     PartialAttribute }
@dataclass(frozen=True, slots=True)
class SearchEntry:
    """An entry of the directory, with those of its attributes that were asked for."""

    name: str
    attributes: AttributeRows

    TAG: ClassVar[int] = _RESPONSE | 4

    def values(self, attribute: str) -> Values:
        """The values of an attribute, whose name is compared without case; none if it is absent."""
        wanted = attribute.lower()
        return next((v for name, v in self.attributes if name.lower() == wanted), ())

    def encode(self) -> bytes:
        return ber.element(self.TAG, ber.text(self.name), encode_attributes(self.attributes))

    @classmethod
    def decode(cls, reader: BerReader) -> SearchEntry:
        return cls(reader.text("the name of an entry"), decode_attributes(reader))


# SearchResultReference ::= [APPLICATION 19] SEQUENCE OF uri URI
@dataclass(frozen=True, slots=True)
class SearchReference:
    """Other servers that have a further part of what was searched."""

    uris: tuple[str, ...]

    TAG: ClassVar[int] = _RESPONSE | 19

    def encode(self) -> bytes:
        return ber.element(self.TAG, *map(ber.text, self.uris))

    @classmethod
    def decode(cls, reader: BerReader) -> SearchReference:
        return cls(_uris(reader))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """An answer that is a result and nothing else."""

    result: LdapResult = LdapResult()

    TAG: ClassVar[int]

    def encode(self) -> bytes:
        return ber.element(self.TAG, self.result.encode())

    @classmethod
    def decode(cls: type[_O], reader: BerReader) -> _O:
        return cls(LdapResult.decode(reader))


_O = TypeVar("_O", bound=_Outcome)


class SearchDone(_Outcome):
    """SearchResultDone: no more entries follow."""

    __slots__ = ()
    TAG = _RESPONSE | 5


class ModifyResponse(_Outcome):
    __slots__ = ()
    TAG = _RESPONSE | 7


class AddResponse(_Outcome):
    __slots__ = ()
    TAG = _RESPONSE | 9


class DeleteResponse(_Outcome):
    __slots__ = ()
    TAG = _RESPONSE | 11


class RenameResponse(_Outcome):
    """ModifyDNResponse."""

    __slots__ = ()
    TAG = _RESPONSE | 13


# ExtendedResponse ::= [APPLICATION 24] SEQUENCE { COMPONENTS OF LDAPResult,
#     responseName [10] LDAPOID OPTIONAL, responseValue [11] OCTET STRING OPTIONAL }
@dataclass(frozen=True, slots=True)
class ExtendedResponse:
    result: LdapResult
    name: str = ""
    value: bytes | None = None

    TAG: ClassVar[int] = _RESPONSE | 24

    def encode(self) -> bytes:
        name = ber.text(self.name, _NAME) if self.name else b""
        value = b"" if self.value is None else ber.element(_VALUE, self.value)
        return ber.element(self.TAG, self.result.encode(), name, value)

    @classmethod
    def decode(cls, reader: BerReader) -> ExtendedResponse:
        result, name, value = LdapResult.decode(reader), "", None
        if reader.tag == _NAME:
            name = reader.text("the name of an answer", _NAME)
        if reader.tag == _VALUE:
            value = reader.octets("the value of an answer", _VALUE)
        return cls(result, name, value)


#: An answer with which an operation ends.
FinalResponse = (
    BindResponse
    | SearchDone
    | ModifyResponse
    | AddResponse
    | DeleteResponse
    | RenameResponse
    | ExtendedResponse
)
LdapResponse = SearchEntry | SearchReference | FinalResponse
