"""Checks of queue aliases and distribution lists: what they stand for has to exist."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.findings import Finding
from mqis.protocol.activedirectory.estate.facts import AliasFact
from mqis.protocol.activedirectory.estate.findings import EstateCheck, Unseen, finding
from mqis.protocol.activedirectory.estate.identities import SHOWING
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.protocol.activedirectory.estate.questions import DELETED, lists_of_queues
from mqis.protocol.activedirectory.estate.sight import SeenKind, name_of
from mqis.protocol.activedirectory.estate.topology import ASKING
from mqis.protocol.activedirectory.recipients import MEMBER
from mqis.wire.ldap.changes import AttributeChange, ModifyEntry, ModifyKind

_POINT = "write the format name of the queue that is meant into msMQ-Recipient-FormatName"


def aliases_to_nowhere(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds aliases without a format name, and those whose queue or computer is gone."""
    for alias in index.facts.aliases:
        if alias.fault:
            yield finding(
                EstateCheck.ALIAS_TO_NOWHERE, alias.where, f"its format name {alias.fault}", _POINT
            )
        else:
            yield from _judged(index, alias)


def _judged(index: EstateIndex, alias: AliasFact) -> Iterator[Finding | Unseen]:
    facts, guid = index.facts, None if alias.target is None else alias.target.guid
    if alias.target is None or guid is None or guid in facts.sight.ids:
        return
    known = guid.raw in facts.queue_ids or guid in index.machine_ids
    if known:
        return
    what = "queue" if alias.target.form == "PUBLIC" else "queue manager"
    if not facts.sight.is_whole or index.is_veiled:
        doubt = f"the {what} of an alias is not seen"
        yield Unseen(EstateCheck.ALIAS_TO_NOWHERE, alias.where, doubt, f"{ASKING}; {SHOWING}")
    else:
        gone = f"there is no {what} {guid}"
        yield finding(EstateCheck.ALIAS_TO_NOWHERE, alias.where, gone, f"{_POINT}, or delete it")


def bad_list_members(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds members that make a list useless: one of another kind, or one that is gone."""
    sight = index.facts.sight
    lists = lists_of_queues(index.facts)
    queues = {name_of(queue.where) for queue in index.facts.queues} if lists else set()
    for each in lists:
        bad: dict[str, str] = {}
        for member in each.members:
            name = name_of(member)
            kind = sight.kind_of(name)
            if name in queues or kind is SeenKind.RECIPIENT:
                continue
            if DELETED in name or sight.is_gone(name):
                bad[member] = "does not exist"
            elif kind is not None:
                bad[member] = "is neither a queue nor an alias nor a list"
            else:
                doubt = "a member of a list is not seen"
                yield Unseen(EstateCheck.BAD_LIST_MEMBER, each.where, doubt, SHOWING)
        if bad:
            named = "; ".join(f"{member} {why}" for member, why in bad.items())
            gone = tuple(member.encode() for member in bad)
            change = AttributeChange(ModifyKind.DELETE, MEMBER, gone)
            yield finding(
                EstateCheck.BAD_LIST_MEMBER,
                each.where,
                named,
                "take them out of the list; put people into a group of their own",
                (ModifyEntry(each.where, (change,)),),
            )
