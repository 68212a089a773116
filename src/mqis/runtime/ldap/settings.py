"""The settings of a directory connection."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.binding import LdapLogin
from mqis.runtime.ldap.tls import TlsSettings
from mqis.wire.ldap.messages import MAXIMUM_MESSAGE


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """The servers in order of preference, the logon, and limits."""

    servers: tuple[LdapUrl, ...]
    login: LdapLogin = field(default_factory=LdapLogin)
    tls: TlsSettings = field(default_factory=TlsSettings)
    #: Begins TLS on ``ldap://`` before anything else is said.
    start_tls: bool = False
    connect_timeout_s: float = 10.0
    #: For each answer, not for a whole search.
    operation_timeout_s: float = 60.0
    #: Memory for answers that have arrived and are not read yet.
    buffer_limit: int = MAXIMUM_MESSAGE
