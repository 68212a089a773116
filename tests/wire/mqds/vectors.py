"""The callback vectors of tests/data/mqds-callbacks.txt, by their headings."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).parents[2] / "data" / "mqds-callbacks.txt"


def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _FILE.read_text().splitlines():
        if line.startswith("["):
            lines = found[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def section(beginning: str) -> list[str]:
    """The lines under the one heading that is this, or else begins so."""
    if beginning in SECTIONS:
        return SECTIONS[beginning]
    (lines,) = [lines for title, lines in SECTIONS.items() if title.startswith(beginning)]
    return lines


def octets(beginning: str) -> bytes:
    (line,) = section(beginning)
    return bytes.fromhex(line)


SECTIONS = _sections()
_KEY = dict(line.split("=") for line in section("RSA-512 test key"))
#: The key whose public half is in the vectors, and the half that signs.
MODULUS, PRIVATE_EXPONENT = int(_KEY["n"], 16), int(_KEY["d"], 16)
CHALLENGE = octets("challenge")
PUBLIC_KEYS = octets("MQDSPUBLICKEYS")
PUBLIC_KEYS_KEYX = octets("the same with aiKeyAlg 0xa400")
SIGNATURE = octets("signature over it")
MACHINE_SIGNATURE = octets("signature")
