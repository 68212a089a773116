"""Queue names that are longer than a common name may be (MS-MQDSSM 2.2.5, 3.1.6.1.2.5).

A name of up to 63 characters is the entry's cn. Of a longer one the first 55 characters, a hyphen
and a hash of the whole name make a cn of 64, and the rest is kept in mSMQQueueNameExt.
"""

from __future__ import annotations

from typing import Final

#: The hash is a reflected CRC of 32 bits over the UTF-16 big-endian octets.
_POLYNOMIAL: Final = 0x9B619023
#: The longest name that is a cn as it is; a cn of 64 characters is always a cut one.
LONGEST_PLAIN: Final = 63
_KEPT: Final = 55
_CUT_LENGTH: Final = 64


def _table_row(index: int) -> int:
    value = index
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE: Final = tuple(map(_table_row, range(256)))


def queue_name_hash(name: str) -> str:
    """Eight hexadecimal digits that do not depend on the case of the name."""
    value = 0
    for octet in lowered(name).encode("utf-16-be", "surrogatepass"):
        value = value >> 8 ^ _TABLE[(octet ^ value) & 0xFF]
    return f"{value:08x}"


def lowered(name: str) -> str:
    """Maps one character to one, as Windows does; ``str.lower`` makes two of a few."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in name)


def split_name(name: str) -> tuple[str, str]:
    """Returns the cn of a queue and the rest of its name, which is empty for most."""
    if len(name) <= LONGEST_PLAIN:
        return name, ""
    # Counted, cut and hashed without escapes (E-MQDSSM-18).
    return f"{name[:_KEPT]}-{queue_name_hash(name)}", name[_KEPT:]


def join_name(cn: str, rest: str) -> str:
    """Returns the name of a queue; a cn of 64 characters that no cut made stays as it is."""
    if len(cn) != _CUT_LENGTH:
        return cn
    whole = cn[:_KEPT] + rest
    return whole if cn.lower() == split_name(whole)[0].lower() else cn
