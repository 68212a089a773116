"""Limits on how much of the directory one caller may take up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """Generous for people and programs, small against a store. Administrators have none."""

    #: Objects whose descriptor names the caller as owner.
    max_owned: int = 10_000
    #: Certificates of one user, and the bytes of all of them together.
    max_certificates: int = 64
    max_certificate_bytes: int = 256 * 1024


DEFAULTS = Allowance()
