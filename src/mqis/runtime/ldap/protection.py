"""The protection of what is said after a SASL logon."""

from __future__ import annotations

from enum import Enum


class LdapProtection(Enum):
    """The protection that a connection without TLS gets by the logon itself."""

    NONE = "none"
    SIGN = "sign"
    SEAL = "seal"
