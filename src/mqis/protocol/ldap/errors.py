"""The errors of a connection to an LDAP server."""

from __future__ import annotations

from mqis.protocol.errors import ProtocolError
from mqis.wire.ldap.responses import LdapResult


class LdapError(ProtocolError):
    """An operation on an LDAP server has failed."""


class LdapRefused(LdapError):
    """The server answered with a result code other than success."""

    def __init__(self, what: str, result: LdapResult) -> None:
        super().__init__(f"{what}: the directory refuses: {result}")
        self.what = what
        self.result = result

    def __reduce__(self) -> tuple[type[LdapRefused], tuple[str, LdapResult]]:
        return type(self), (self.what, self.result)

    @property
    def code(self) -> int:
        return self.result.code


class LdapConnectionLost(LdapError):
    """The connection ended before the answer came; a change may have been made or not."""


class LdapViolation(LdapError):
    """The server sent what LDAP does not allow at this moment."""
