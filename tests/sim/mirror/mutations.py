"""Mutations that put a plausible bug into the mirror; a seed of its world finds each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from mqis.admin.activedirectory.mirror import round as mirror_round
from mqis.admin.activedirectory.mirror import writing as mirror_writing
from mqis.admin.activedirectory.mirror.feed import ChangeFeed, read_identity
from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.admin.activedirectory.mirror.writing import WRITE_ORDER, MirrorWriter
from mqis.protocol.activedirectory.mirror.cursor import (
    MIRROR_CURSOR,
    MIRROR_FAMILY,
    MirrorCursor,
    ServerIdentity,
)
from mqis.sim.mutations import Replacement
from mqis.wire.guid import Guid

_Any = Callable[..., Any]
_Async = Callable[..., Awaitable[Any]]


def _once(_put_all: _Any) -> _Any:
    def put_all(writer: MirrorWriter, objects: Iterable[Any]) -> None:
        order = {kind: place for place, kind in enumerate(WRITE_ORDER)}
        for obj in sorted(objects, key=lambda obj: order[obj.type]):
            writer.put(obj)

    return put_all


def _whoever_answers(expect: _Async) -> _Async:
    async def expected(mirror: EstateMirror, forest: Any, cursor: MirrorCursor) -> None:
        now = await read_identity(mirror._clients[0])
        await expect(mirror, forest, replace(cursor, server=now))

    return expected


def _whatever_rights(expect: _Async) -> _Async:
    async def expected(mirror: EstateMirror, forest: Any, cursor: MirrorCursor) -> None:
        found = await read_identity(mirror._clients[0])
        if found.invocation != cursor.server.invocation:
            await expect(mirror, forest, cursor)

    return expected


def _always(value: object) -> _Any:
    return lambda _original: lambda *_arguments, **_named: value


def _always_awaited(value: object) -> _Any:
    async def answered(*_arguments: object, **_named: object) -> object:
        return value

    return lambda _original: answered


def _absent_is_deleted(look_at: _Async) -> _Async:
    async def looked(mirror: EstateMirror, forest: Any, guid: Guid, pending: Any) -> None:
        await look_at(mirror, forest, guid, pending)
        pending.removed |= pending.absent | pending.hidden

    return looked


def _unseen_is_deleted(_confirmed: _Async) -> _Async:
    async def confirmed(_mirror: EstateMirror, _forest: Any, missing: Iterable[Guid]) -> set[Guid]:
        return set(missing)

    return confirmed


def _position_of_the_end(fresh: _Async) -> _Async:
    async def compared(mirror: EstateMirror, forest: Any, *others: Any) -> Any:
        result = await fresh(mirror, forest, *others)
        server, seen = await read_identity(mirror._clients[0]), result.cursor.sees_deletions
        begun = await forest.domains[0].feed.begin(server, sees_deletions=seen)
        later = replace(result.cursor, server=server, cookies=begun.cookies)
        with mirror._store.write() as tx:
            tx.put_state(MIRROR_FAMILY, MIRROR_CURSOR, later.to_bytes())
        return result

    return compared


def _position_first(write: _Any) -> _Any:
    def written(mirror: EstateMirror, *others: Any, result: Any, **named: Any) -> Any:
        if len(others) == 3:
            with mirror._store.write() as tx:
                tx.put_state(MIRROR_FAMILY, MIRROR_CURSOR, result.cursor.to_bytes())
        return write(mirror, *others, result=result, **named)

    return written


def _nothing_late(write: _Any) -> _Any:
    def written(*arguments: Any, **named: Any) -> list[Any]:
        write(*arguments, **named)
        return []

    return written


def _any_invocation(doubt: _Any) -> _Any:
    def doubted(cursor: MirrorCursor, found: ServerIdentity, *, sees_deletions: bool) -> str:
        same = replace(found, invocation=cursor.server.invocation)
        text: str = doubt(cursor, same, sees_deletions=sees_deletions)
        return text

    return doubted


def _any_rights(doubt: _Any) -> _Any:
    def doubted(cursor: MirrorCursor, found: ServerIdentity, *, sees_deletions: bool) -> str:
        text: str = doubt(cursor, found, sees_deletions=cursor.sees_deletions)
        return text

    return doubted


_MIRROR, _WRITER, _CURSOR = EstateMirror, MirrorWriter, MirrorCursor

M01 = ((_WRITER, "put_all", _once),)
M02 = ((_MIRROR, "_expect", _whoever_answers),)
M03 = ((_MIRROR, "_expect", _whatever_rights),)
M04 = ((_WRITER, "_free_name", _always(False)),)
M05 = ((_MIRROR, "_some_of", _always(set())),)
M06 = ((_MIRROR, "_look_at", _absent_is_deleted),)
M07 = ((_MIRROR, "_confirmed", _unseen_is_deleted),)
M08 = ((_MIRROR, "_fresh", _position_of_the_end),)
M09 = ((_MIRROR, "_write", _position_first),)
M10 = ((_CURSOR, "doubt", _any_invocation),)
M11 = ((_MIRROR, "_hosted", _always_awaited(None)),)
M12 = ((_MIRROR, "_complete", _always_awaited(None)),)
M13 = ((_MIRROR, "_missing", _always_awaited(set())),)
M14 = ((_MIRROR, "_write", _nothing_late),)
M15 = ((_CURSOR, "doubt", _any_rights),)
M16 = ((ChangeFeed, "sees_site", _always_awaited(True)),)
M17 = ((_MIRROR, "_confirmed", _always_awaited(set())),)
M18 = ((mirror_round, "is_refused", _always(False)),)
M19 = ((mirror_writing, "check_host", _always(None)),)
M20 = ((_MIRROR, "_referrers", _always(frozenset())),)
M21 = ((_CURSOR, "is_due", _always(False)),)
M22 = ((_MIRROR, "_freed", _always(frozenset())),)
M23 = ((_MIRROR, "_unfit", _always(None)),)
M24 = ((mirror_writing, "keep_left_out", _always(None)),)

BUGS: dict[str, tuple[str, tuple[Replacement, ...]]] = {
    "M01": ("taken names are not tried twice", M01),
    "M02": ("nobody asks in the end who answered", M02),
    "M03": ("a right lost in a round is not noticed", M03),
    "M04": ("exchanged names block each other", M04),
    "M05": ("what was left out is not tried again", M05),
    "M06": ("a change that cannot be read is a deletion", M06),
    "M07": ("what a full reading misses is deleted unasked", M07),
    "M08": ("a full reading is as new as its end", M08),
    "M09": ("the position is committed before the changes", M09),
    "M10": ("the position counts at every controller", M10),
    "M11": ("a renamed computer does not rename its queues", M11),
    "M12": ("what changes without a number stays", M12),
    "M13": ("hidden deletions are not looked for", M13),
    "M14": ("what a full reading could not write is forgotten", M14),
    "M15": ("a mirror that no longer sees deletions relies on it", M15),
    "M16": ("an account that sees no site goes on", M16),
    "M17": ("a full reading deletes nothing", M17),
    "M18": ("the mirror waits for ever for the right to replicate", M18),
    "M19": ("a queue goes to whoever has its machine's name", M19),
    "M20": ("machines keep routing servers that are deleted", M20),
    "M21": ("everything is never compared again", M21),
    "M22": ("what is left out does not hear of a free name", M22),
    "M23": ("values that do not fit are not named", M23),
    "M24": ("what is left out is forgotten", M24),
}
