"""LDAP URLs (RFC 4516): the addresses that people write and that servers send as referrals.

ldaps://dc1.corp.example              TLS from the start, port 636
ldap://dc1.corp.example:3268          plain or StartTLS, here the global catalogue
ldaps:///DC=corp,DC=example           no host: servers of that domain, found by DNS
ldap://dc1/CN=x,DC=corp??sub?(cn=a)   a referral, with scope and filter
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mqis.texts import host_port
from mqis.wire.errors import MqisError, WireError
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Filter, parse_filter
from mqis.wire.ldap.names import DistinguishedName

LDAP_PORT, LDAPS_PORT = 389, 636
GLOBAL_CATALOGUE_PORT, GLOBAL_CATALOGUE_TLS_PORT = 3268, 3269

MAXIMUM_URL: Final = 16_384
_URL = re.compile(
    r"(?P<scheme>ldaps?)://"
    r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^/:?#\[\]@\s]*))(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/(?P<rest>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_SCOPES: Final = {
    "": None,
    "base": SearchScope.BASE,
    "one": SearchScope.ONE_LEVEL,
    "sub": SearchScope.SUBTREE,
}
_PERCENT = re.compile(rb"%(.?.?)", re.DOTALL)
#: An account before the host, which a message must not repeat: there may be a password in it.
_ACCOUNT = re.compile(r"(?P<scheme>\bldaps?:/+)[^/?#]*@", re.IGNORECASE)
#: The same, if the password has characters that end a host.
_ANY_ACCOUNT = re.compile(r"(?P<scheme>\bldaps?:/+).*@", re.IGNORECASE | re.DOTALL)
#: Where the account belongs instead.
ACCOUNT_PLACE: Final = (
    "leave the account out of the URL; give its name with --user (a server: store.user), and its "
    "password in a file with --password-file (store.password_file, MQIS_LDAP_PASSWORD_FILE)"
)


def holds_account(text: str) -> bool:
    """Returns whether an LDAP URL in ``text`` has a user before its host.

    ``ldaps://user:12345/x@dc`` has one too: its password looks like a port and a path.
    """
    if _ACCOUNT.search(text) is not None:
        return True
    match = _URL.fullmatch(text.strip()) if len(text) <= MAXIMUM_URL else None
    return match is not None and _ends_account(match["rest"] or "")


def _ends_account(rest: str) -> bool:
    """True if an @ behind the host can only be the end of an account."""
    base, attributes, scope, query, *_ = [*rest.split("?"), "", "", ""]
    if "@" not in rest:
        return False
    try:
        DistinguishedName.parse(base)
    except WireError:
        return True
    return "@" in attributes + scope or ("@" in query and not query.startswith("("))


def without_account(text: str) -> str:
    """Removes what stands before an @ in LDAP URLs."""
    return _ANY_ACCOUNT.sub(r"\g<scheme>", text)


@dataclass(frozen=True, slots=True)
class LdapUrl:
    """An LDAP URL; an empty ``host`` leaves the server open."""

    host: str
    port: int
    tls: bool
    base: str = ""
    scope: SearchScope | None = None
    filter: Filter | None = None

    @classmethod
    def parse(cls, text: str) -> LdapUrl:
        match = _URL.fullmatch(text.strip()) if len(text) <= MAXIMUM_URL else None
        shown = without_account(text)
        if shown != text and (match is None or holds_account(text)):
            raise MqisError(f"{shown[:80]}: {ACCOUNT_PLACE}")
        if match is None:
            raise MqisError(f"{text[:80]!r} is not an LDAP URL, such as ldaps://dc1.corp.example")
        tls = match["scheme"].lower() == "ldaps"
        port = int(match["port"] or (LDAPS_PORT if tls else LDAP_PORT))
        if not 0 < port < 65536:
            raise MqisError(f"{text}: {port} is not a port")
        base, _, query = (match["rest"] or "").partition("?")
        fields = [*query.split("?"), "", "", ""]
        return cls(
            match["v6"] or match["host"],
            port,
            tls,
            _unquote(base, text),
            _scope(fields[1], text),
            _filter(_unquote(fields[2], text), text),
        )

    @property
    def is_global_catalogue(self) -> bool:
        return self.port in (GLOBAL_CATALOGUE_PORT, GLOBAL_CATALOGUE_TLS_PORT)

    @property
    def domain(self) -> str:
        """The domain that the base names: ``corp.example`` for ``DC=corp,DC=example``."""
        try:
            parts = DistinguishedName.parse(self.base).parts
        except WireError:
            return ""
        return ".".join(part.value for part in parts if part.attribute.upper() == "DC")

    def __str__(self) -> str:
        """The server without base and filter, for messages."""
        scheme, usual = ("ldaps", LDAPS_PORT) if self.tls else ("ldap", LDAP_PORT)
        at = host_port(self.host, None if self.port == usual else self.port)
        return f"{scheme}://{at}" + ("" if self.host else f"/{self.base}")


def _scope(text: str, url: str) -> SearchScope | None:
    try:
        return _SCOPES[text.lower()]
    except KeyError:
        raise MqisError(f"{url}: {text!r} is not a scope: base, one or sub") from None


def _filter(text: str, url: str) -> Filter | None:
    try:
        return parse_filter(text) if text else None
    except WireError as error:
        raise MqisError(f"{url}: the filter is wrong: {error}") from None


def _unquote(text: str, url: str) -> str:
    try:
        return _PERCENT.sub(lambda m: bytes.fromhex(m[1].decode()), text.encode()).decode()
    except ValueError:
        raise MqisError(f"{url}: a percent sign is not followed by two digits of UTF-8") from None
