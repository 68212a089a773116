"""The position of a mirror: up to which change of which domain controller the store is equal.

It is kept in the store, in the transaction of the changes that it stands behind. So a mirror that
is killed goes on with exactly the next change.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mqis.protocol.activedirectory.mirror.leftout import LeftOut, summary
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.texts import moment
from mqis.wire.guid import Guid

#: The family of a mirror's values in its store, and their keys.
MIRROR_FAMILY = "mirror"
MIRROR_IDENTITY = b"identity"
MIRROR_CURSOR = b"cursor"
_VERSION = 1
_MAXIMUM = 4 << 20
#: Seconds after which a mirror that follows a directory compares everything again.
COMPARE_S = 24 * 60 * 60


class MirrorMode(StrEnum):
    """The way to ask a domain controller for changes."""

    #: The DirSync control with the right "replicating directory changes".
    DIRSYNC = "dirsync"
    #: The same for what the account may read.
    DIRSYNC_READABLE = "dirsync_readable"
    #: A search for greater uSNChanged.
    USN = "usn"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A domain controller at one moment. A restored one has another ``invocation``."""

    invocation: Guid
    host: str
    #: The number of its last change.
    usn: int
    #: The identifier of the domain, which all its controllers share.
    domain: Guid


@dataclass(frozen=True, slots=True)
class MirrorCursor:
    """``cookies`` are those of DirSync, of the domain and of the configuration."""

    server: ServerIdentity
    mode: MirrorMode
    cookies: tuple[bytes, ...] = ()
    #: Whether the account sees deleted objects; if not, missing ones are looked for.
    sees_deletions: bool = True
    #: The moment at which everything was compared last; 0: by an older mqis, which kept none.
    compared_s: int = 0
    #: The number of objects that this comparison found different.
    differed: int = 0
    #: The positions of further domains of the forest, whose cookies are those of the domain alone.
    others: tuple[MirrorCursor, ...] = ()

    @property
    def each(self) -> tuple[MirrorCursor, ...]:
        """The position of each domain."""
        return (self, *self.others)

    def doubt(self, found: ServerIdentity, *, sees_deletions: bool) -> str:
        """Returns why the position means nothing at this server; empty if it can go on."""
        if found.invocation != self.server.invocation:
            if found.host == self.server.host:
                return f"{found.host} was restored from a backup"
            return f"{found.host} answers instead of {self.server.host}"
        if found.usn < self.server.usn:
            return (
                f"{found.host} has gone back from change {self.server.usn} to {found.usn}: it is "
                "an older copy of itself"
            )
        if sees_deletions != self.sees_deletions:
            now = "sees deleted objects now" if sees_deletions else "sees no deleted objects now"
            return f"the account {now}"
        return ""

    def is_due(self, now_s: float) -> bool:
        """Returns whether everything is to be compared again; a clock may have gone back."""
        return not 0 <= now_s - self.compared_s < COMPARE_S

    def compared(self, now_s: float, differed: int = 0) -> MirrorCursor:
        return replace(self, compared_s=int(now_s), differed=differed)

    def moved(self, usn: int, cookies: tuple[bytes, ...]) -> MirrorCursor:
        """The position behind further changes."""
        return replace(self, server=replace(self.server, usn=usn), cookies=cookies)

    def to_bytes(self) -> bytes:
        values = {"version": _VERSION, **self._values()}
        if self.others:
            values["others"] = [other._values() for other in self.others]
        return json.dumps(values).encode()

    def _values(self) -> dict[str, Any]:
        return {
            "invocation": str(self.server.invocation),
            "host": self.server.host,
            "usn": self.server.usn,
            "domain": str(self.server.domain),
            "mode": self.mode.value,
            "cookies": [base64.b64encode(cookie).decode("ascii") for cookie in self.cookies],
            "sees_deletions": self.sees_deletions,
            "compared_s": self.compared_s,
            "differed": self.differed,
        }

    @classmethod
    def from_bytes(cls, data: bytes) -> MirrorCursor:
        """Reads a position; ``StorageError`` if it is damaged or of a newer version."""
        try:
            values = json.loads(data[:_MAXIMUM])
            if values["version"] != _VERSION:
                raise ValueError(f"version {values['version']!r}, not {_VERSION}")
            others = tuple(map(cls._from, values.get("others", ())))
            return replace(cls._from(values), others=others)
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise StorageError(
                f"the position of the mirror in the store is damaged ({error}); mirror into a new "
                "store"
            ) from error

    @classmethod
    def _from(cls, values: dict[str, Any]) -> MirrorCursor:
        server = ServerIdentity(
            Guid.parse(values["invocation"]),
            str(values["host"]),
            int(values["usn"]),
            Guid.parse(values["domain"]),
        )
        cookies = tuple(base64.b64decode(text, validate=True) for text in values["cookies"])
        seen = values["sees_deletions"] is True
        compared = int(values.get("compared_s", 0)), int(values.get("differed", 0))
        return cls(server, MirrorMode(values["mode"]), cookies, seen, *compared)


def is_mirror(view: View) -> bool:
    """Returns whether ``mqis mirror`` writes this store."""
    return view.state(MIRROR_FAMILY, MIRROR_IDENTITY) is not None


def read_cursor(view: View) -> MirrorCursor | None:
    """The position of a mirror; None for a store that is not complete yet."""
    found = view.state(MIRROR_FAMILY, MIRROR_CURSOR)
    return None if found is None else MirrorCursor.from_bytes(found)


def state_of(cursor: MirrorCursor, left_out: Mapping[Guid, LeftOut]) -> str:
    """``equal to dc1 up to change 7``, ``... but for 2 left out (reasons)``, and what differed."""
    text = f"equal to {position_of(cursor, ' up to change')}"
    if left_out:
        text += f", but for {len(left_out)} left out ({summary(left_out.values())})"
    if not cursor.compared_s:
        return f"{text}, as far as numbers of changes tell: it was never compared as a whole"
    if cursor.differed:
        text += f"; {cursor.differed} differed when it was compared at {moment(cursor.compared_s)}"
    return text


def position_of(cursor: MirrorCursor, up_to: str) -> str:
    """Each controller and the number of its change, such as ``dc1 up to change 7``."""
    return ", ".join(f"{each.server.host}{up_to} {each.server.usn}" for each in cursor.each)
