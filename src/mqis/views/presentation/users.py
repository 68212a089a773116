"""Users as people write them."""

from __future__ import annotations


def split_user(text: str) -> tuple[str, str]:
    """``DOMAIN\\NAME``, ``NAME@DOMAIN`` or ``NAME`` as domain and name."""
    domain, backslash, name = text.partition("\\")
    if not backslash:
        name, _, domain = text.partition("@")
    return domain, name
