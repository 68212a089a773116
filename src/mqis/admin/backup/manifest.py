"""The manifest of a backup: its server, its time, sequence numbers and digests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from mqis.wire.errors import MqisError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

FORMAT, VERSION = "mqis backup", 1


class Content(StrEnum):
    """The files that a backup may hold, by their names in it."""

    STORE = "store.db"
    CONFIG = "mqis.toml"
    ACCOUNTS = "accounts.toml"
    KEY = "signing.key"
    KEYTAB = "keytab"


#: Files whose holder can act as the server, or as its users.
SECRETS = frozenset({Content.ACCOUNTS, Content.KEY, Content.KEYTAB})


def _typed(value: T) -> T:
    """Checks that strings are strings and integers not negative; else raises ``TypeError``."""
    for field in fields(value):
        found = getattr(value, field.name)
        if field.type == "str" and not isinstance(found, str):
            raise TypeError(f"{field.name} is not a text")
        if field.type == "int" and (type(found) is not int or found < 0):
            raise TypeError(f"{field.name} is not a number")
    return value


@dataclass(frozen=True, slots=True)
class FileEntry:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """The numbers of a partition, as sixteen hexadecimal digits."""

    id: str
    name: str
    owner: str
    #: True if this server was its authority.
    authority: bool
    last_seq: str
    purged_seq: str


@dataclass(frozen=True, slots=True)
class Manifest:
    #: UTC, ISO 8601.
    created: str
    mqis: str
    enterprise: str
    server: str
    role: str
    site: str
    #: The GUID of the machine; empty if the directory has none of this name.
    id: str
    #: The kind of the server's store: sqlite or postgresql. In the backup it is always SQLite.
    kind: str
    schema: int
    journal_lsn: int
    objects: Mapping[str, int]
    partitions: tuple[PartitionEntry, ...]
    files: tuple[FileEntry, ...] = ()

    @property
    def is_authority(self) -> bool:
        return any(partition.authority for partition in self.partitions)

    @property
    def secrets(self) -> list[str]:
        return [file.name for file in self.files if file.name in SECRETS]

    def holds(self, content: Content) -> bool:
        return any(file.name == content for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    def to_bytes(self) -> bytes:
        return json.dumps(self.to_json(), indent=2).encode("ascii") + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        try:
            content: dict[str, Any] = json.loads(data)
            if content["format"] != FORMAT:
                raise ValueError("this is not a backup of mqis")
            if content["version"] != VERSION:
                raise ValueError(
                    f"its version is {content['version']}, this mqis reads {VERSION}: use the "
                    "mqis that wrote it"
                )
            known = {f.name for f in fields(cls)}
            values = {key: value for key, value in content.items() if key in known}
            values["files"] = tuple(_typed(FileEntry(**entry)) for entry in content["files"])
            values["partitions"] = tuple(
                _typed(PartitionEntry(**entry)) for entry in content["partitions"]
            )
            return _typed(cls(**values))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MqisError(f"the manifest cannot be read: {error}") from error
