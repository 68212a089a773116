"""Parses the names of users."""

from __future__ import annotations


def split_user(text: str) -> tuple[str, str]:
    """Splits ``DOMAIN\\NAME``, ``NAME@DOMAIN`` or ``NAME`` into domain and name."""
    domain, backslash, name = text.partition("\\")
    if not backslash:
        name, _, domain = text.partition("@")
    return domain, name
