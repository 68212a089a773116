"""The properties of a change: identifiers, then values without tags (MC-MQDSRP 2.2.4).

The synchronisation of a partition has a hundred thousand such lists, but of seven kinds only. So a
plan is made once for each list of identifiers: it packs and unpacks runs of fixed size together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from struct import Struct

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.propvariant import PropVariant, VarType, trusted
from mqis.wire.reader import Reader

Listed = tuple[tuple[int, PropVariant], ...]

_FORMATS = {
    VarType.I1: "b",
    VarType.UI1: "B",
    VarType.I2: "h",
    VarType.UI2: "H",
    VarType.I4: "i",
    VarType.UI4: "I",
    VarType.I8: "q",
    VarType.UI8: "Q",
    VarType.CLSID: "16s",
}


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive properties of fixed size, or one of variable size (``form`` is None)."""

    form: Struct | None
    properties: tuple[tuple[int, VarType], ...]


@lru_cache(maxsize=1024)
def _plan(ids: tuple[int, ...]) -> tuple[_Run, ...]:
    runs: list[_Run] = []
    fixed: list[tuple[int, VarType]] = []
    for propid in ids:
        vt = PROPERTIES[propid].vt
        if vt in _FORMATS:
            fixed.append((propid, vt))
            continue
        if fixed:
            runs.append(_fixed(fixed))
            fixed = []
        runs.append(_Run(None, ((propid, vt),)))
    if fixed:
        runs.append(_fixed(fixed))
    return tuple(runs)


def _fixed(properties: list[tuple[int, VarType]]) -> _Run:
    form = Struct("<" + "".join(_FORMATS[vt] for _, vt in properties))
    return _Run(form, tuple(properties))


@lru_cache(maxsize=256)
def _identifiers(count: int) -> Struct:
    return Struct(f"<{count}I")


def decode_list(reader: Reader, count: int) -> Listed:
    """Decodes ``count`` identifiers and their values; refuses unknown identifiers."""
    at = reader.offset
    ids: tuple[int, ...] = reader.unpack(_identifiers(count), "PropertyID")
    for index, propid in enumerate(ids):
        if (
            propid not in PROPERTIES
        ):  # no length tells where the next value starts (MQDSRP-2.2.4-08)
            raise reader.error(
                f"property {propid} is unknown, so nothing behind it can be read", at + 4 * index
            )
    found: list[tuple[int, PropVariant]] = []
    for run in _plan(ids):
        if run.form is None:
            propid, vt = run.properties[0]
            found.append((propid, PropVariant.decode(reader, vt)))
            continue
        values = reader.unpack(run.form, "PropertyValue")
        for (propid, vt), value in zip(run.properties, values, strict=True):
            found.append((propid, trusted(vt, Guid(value) if vt is VarType.CLSID else value)))
    return tuple(found)


def encode_list(properties: Listed) -> bytes:
    """Encodes the identifiers, then the values."""
    ids = tuple([propid for propid, _ in properties])
    parts = [_identifiers(len(ids)).pack(*ids)]
    values = iter(properties)
    for run in _plan(ids):
        if run.form is None:
            parts.append(next(values)[1].packed())
            continue
        plain = []
        for _, vt in run.properties:
            value = next(values)[1].value
            plain.append(value.raw if vt is VarType.CLSID else value)  # type: ignore[union-attr]
        parts.append(run.form.pack(*plain))
    return b"".join(parts)
