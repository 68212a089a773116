"""Judges the claims of one key, and all claims of a directory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from mqis.findings import Finding, Subject
from mqis.protocol.hygiene.checks import Check, finding
from mqis.protocol.hygiene.claims import Claim, ClaimKind
from mqis.texts import some

#: The most other objects that a finding about duplicates names.
_NAMED = 3

by_key: Callable[[Claim], str] = attrgetter("key")


def judge(claims: Iterable[Claim]) -> Iterator[Finding]:
    """Yields the findings of claims in any order."""
    return judge_sorted(sorted(claims, key=by_key))


def judge_sorted(claims: Iterable[Claim]) -> Iterator[Finding]:
    """Yields the findings of claims that stand together if they have one key."""
    for _, group in groupby(claims, by_key):
        yield from _judge_key(list(group))


def _judge_key(group: list[Claim]) -> Iterator[Finding]:
    if len(group) == 1 and group[0].kind <= ClaimKind.NAMED:  # most objects
        return
    held = [claim for claim in group if claim.kind == ClaimKind.IS]
    if len(held) > 1:
        yield from (_found(claim, Check.DUPLICATE_ID, claim.detail) for claim in held)
    yield from _same_names([claim for claim in group if claim.kind == ClaimKind.NAMED])
    for claim in group:
        if claim.kind == ClaimKind.FAULT or (claim.kind == ClaimKind.REFERS and not held):
            yield _found(claim, Check[claim.check.upper()], claim.detail)


def _same_names(named: list[Claim]) -> Iterator[Finding]:
    ids = sorted({claim.id for claim in named})
    if len(ids) < 2:
        return
    for claim in named:
        others = [id_ for id_ in ids if id_ != claim.id]
        yield _found(claim, Check.DUPLICATE_NAME, some(others, _NAMED))


def _found(claim: Claim, check: Check, detail: str) -> Finding:
    return finding(check, Subject(claim.type, claim.path, claim.id), detail)


def split_by_certainty(
    findings: Iterable[Finding], uncertain: Collection[str]
) -> tuple[list[Finding], dict[str, int]]:
    """Returns the findings of checks that are certain, sorted, and the number of all others."""
    kept: list[Finding] = []
    left_out: dict[str, int] = {}
    for found in findings:
        if found.check in uncertain:
            left_out[found.check] = left_out.get(found.check, 0) + 1
        else:
            kept.append(found)
    return sorted(kept, key=attrgetter("place")), left_out
