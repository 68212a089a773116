"""JSON documents that are dataclasses: the requests and answers of the administration interface.

A document of a peer is checked key by key, so that it makes a valid dataclass or one error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult

T = TypeVar("T")

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
}


def encode(message: object) -> bytes:
    """Encodes a dataclass."""
    document = asdict(message)  # type: ignore[call-overload]
    return json.dumps(document, separators=(",", ":")).encode("ascii")


class DocumentReader:
    """Reads documents; its errors name the operation that they are about."""

    def __init__(self, about: str) -> None:
        self._about = about

    def document(self, data: bytes) -> dict[str, Any]:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            raise self.bad("not a JSON document") from None
        if not isinstance(document, dict):
            raise self.bad("not a JSON object")
        return document

    def listed(self, kind: type[T], document: Mapping[str, Any], key: str) -> tuple[T, ...]:
        """The dataclasses of the list under a key; none if there is no such key."""
        found = document.get(key, [])
        if not isinstance(found, list):
            raise self.bad(f"{key} is not a list")
        return tuple(self.made(kind, each) for each in found)

    def made(self, kind: type[T], document: Mapping[str, Any]) -> T:
        """Makes a dataclass from a document, whose keys and types it checks."""
        if not isinstance(document, dict):
            raise self.bad("not a JSON object")
        known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
        for key, value in document.items():
            if key not in known:
                raise self.bad(f"unknown key {key[:40]!r}")
            if not _fits(str(known[key].type), value):
                raise self.bad(f"{key} has a wrong type")
        try:
            return kind(**document)
        except TypeError:
            raise self.bad("a key is missing") from None

    def bad(self, reason: str) -> DirectoryError:
        return DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, f"{self._about}: {reason}")


def _fits(annotation: str, value: object) -> bool:
    if annotation.startswith("tuple"):
        return isinstance(value, tuple)
    if isinstance(value, bool) and annotation != "bool":
        return False
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return False
    return isinstance(value, _TYPES[annotation])
