"""Makes text from anywhere harmless to show: control characters and lone surrogates as escapes."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """Escapes characters that would control a terminal or cannot be encoded.

    Names and labels come from anywhere: escape sequences and lone surrogates show as ``\\x1b``.
    """
    return "".join(c if _is_visible(c) else ascii(c)[1:-1] for c in text)


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
