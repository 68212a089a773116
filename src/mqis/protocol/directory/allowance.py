"""Limits on how much of the directory one caller may take up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """Generous for people and programs, small against a store. Administrators have none."""

    #: Objects that the caller has created, whoever owns them now.
    max_owned: int = 10_000
    #: Certificates of one user, and the bytes of all of them together.
    max_certificates: int = 64
    max_certificate_bytes: int = 256 * 1024
    #: Changes of one hour, and the bytes that they write.
    max_changes: int = 50_000
    max_written_bytes: int = 64 << 20


DEFAULTS = Allowance()
