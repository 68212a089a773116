"""Judges the chain of a journal's segments by their headers, sizes and digests.

The header of each segment seals the one before it, so a change of a sealed segment shows in the
next header. The last segment is open: nothing seals its records yet. A removed end leaves no trace
in what remains; only other sources (the store, an export) can tell that there was more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import groupby, pairwise

from mqis.findings import Finding, Gravity
from mqis.protocol.security.rsa import verify_sha256
from mqis.wire.journal.segmentheader import (
    NO_DIGEST,
    SegmentHeader,
    SegmentSeal,
    segment_header,
)
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.security.keyinfo import key_id

# --- The findings about a journal: faults, and facts that are normal and worth knowing ------------


class ChainState(StrEnum):
    """The state of one part of a journal, which is the check of a finding about it."""

    #: The end of the last segment is an unfinished write, as a crash leaves it.
    TORN = "torn"
    #: A record or a header is damaged.
    CORRUPT = "corrupt"
    #: A segment is not the one that the server sealed: its digest or its signature is wrong.
    TAMPERED = "tampered"
    #: The newest segments are signed with a key that is not the server's.
    FOREIGN = "foreign"
    #: A segment, some records or a snapshot are not there.
    MISSING = "missing"
    #: History begins at a snapshot: retention has deleted what lies before. Normal.
    PRUNED = "pruned"
    #: No signature: format version 1, or a server without a key. Normal.
    UNSIGNED = "unsigned"
    #: There is a signature, but no key to check it with: none is given, or the server has replaced
    #: it and a later signature covers the segment.
    UNCHECKED = "unchecked"

    @property
    def is_fault(self) -> bool:
        return self not in (ChainState.PRUNED, ChainState.UNSIGNED, ChainState.UNCHECKED)


def chain_finding(state: ChainState, source: str, first: int, last: int, text: str) -> Finding:
    """A fault or a fact about segments ``first`` to ``last``, found in the file ``source``."""
    gravity = Gravity.ERROR if state.is_fault else Gravity.NOTE
    return Finding(state, gravity, text, where=source, first=first, last=last)


# --- Judges the chain of a journal's segments by their headers, sizes and digests -----------------


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A segment as a link of the chain: plain values, which can be computed where the file is."""

    #: The file, for messages.
    source: str
    header: SegmentHeader
    #: The length of the file, and the SHA-256 of all of it. None: the content is not judged.
    size: int
    digest: bytes | None = None
    #: True if a record in it is damaged, which a disk error may have caused.
    damaged: bool = False
    #: The SHA-256 of the snapshot that the header names. None: it is not there, or not judged.
    snapshot_digest: bytes | None = None

    @classmethod
    def of(cls, source: str, data: bytes, *, damaged: bool = False) -> ChainLink:
        """The link of a whole segment; raises ``WireError`` if its header is malformed."""
        header, _ = segment_header(data)
        return cls(source, header, len(data), sha256(data).digest(), damaged)


def judge_chain(links: Iterable[ChainLink], keys: Sequence[RsaPublicKey] = ()) -> list[Finding]:
    """All findings about the segments of one journal, in any order; ``keys`` are the server's.

    Segments that are there twice count once. Segments of several journals of a server (one is set
    aside when a backup is restored) have to be judged one journal at a time.
    """
    chain, findings = _without_copies(links)
    signatures = judge_signatures([(link.source, link.header) for link in chain], keys)
    faults = [finding for finding in signatures if finding.is_fault]
    if chain:
        findings += _beginning(chain[0])
    for before, link in pairwise(chain):
        number = link.header.number
        trusted = not any(fault.covers(number) for fault in faults)
        findings += _joint(before, link, trusted=trusted)
    return findings + list(_altered_snapshots(chain)) + signatures


def _altered_snapshots(chain: Iterable[ChainLink]) -> Iterator[Finding]:
    """Compares the snapshots with the headers that name them; several may name the same one."""
    found: set[str] = set()
    for link in chain:
        seal, digest = link.header.seal, link.snapshot_digest
        if seal is None or digest is None or seal.snapshot_digest in (NO_DIGEST, digest):
            continue
        directory, slash, name = link.source.rpartition("/")
        path = f"{directory}{slash}{link.header.snapshot}"
        if path not in found:
            found.add(path)
            text = f"changed after {name} was begun: its SHA-256 is not that in the header"
            number = link.header.number
            yield chain_finding(ChainState.TAMPERED, path, number, number, text)


def _without_copies(links: Iterable[ChainLink]) -> tuple[list[ChainLink], list[Finding]]:
    """One link per number, the one that is sealed if there are several, and what differs."""
    ordered = sorted(links, key=lambda link: link.header.number)
    sealed = {link.header.seal.previous_digest for link in ordered if link.header.seal}
    chain: list[ChainLink] = []
    findings: list[Finding] = []
    for number, group in groupby(ordered, key=lambda link: link.header.number):
        copies = list(group)
        best = max(copies, key=lambda link: (link.digest in sealed, link.size))
        chain.append(best)
        for other in copies:
            if other is not best and _contradict(best, other):
                text = f"another segment {number} than {best.source}"
                findings.append(_finding(ChainState.TAMPERED, other, text))
    return chain, findings


def _contradict(one: ChainLink, other: ChainLink) -> bool:
    """Returns whether two links cannot be the same segment. A shorter one may be an older copy."""
    if one.header != other.header:
        return True
    return (
        one.size == other.size
        and None not in (one.digest, other.digest)
        and (one.digest != other.digest)
    )


def _beginning(link: ChainLink) -> Iterator[Finding]:
    header = link.header
    if header.number <= 1:
        return
    gone = f"segments 1 to {header.number - 1}" if header.number > 2 else "segment 1"
    if header.snapshot and header.snapshot_lsn == header.first_lsn - 1:
        text = f"history begins at {header.snapshot}; retention has deleted {gone}"
        yield chain_finding(ChainState.PRUNED, link.source, 1, header.number - 1, text)
    else:
        text = f"{gone} before it: missing, and it does not begin at a snapshot"
        yield chain_finding(ChainState.MISSING, link.source, 1, header.number - 1, text)


def _joint(before: ChainLink, link: ChainLink, *, trusted: bool) -> Iterator[Finding]:
    """Judges two segments that should follow each other; ``trusted`` is the second one's header."""
    first, last = before.header.number + 1, link.header.number - 1
    if before.header.server_id != link.header.server_id:
        text = f"belongs to {link.header.server} and not to {before.header.server}"
        yield _finding(ChainState.TAMPERED, link, text)
    if first <= last:
        gone = f"segment {first} is" if first == last else f"segments {first} to {last} are"
        text = f"{gone} missing before it (records up to {link.header.first_lsn - 1})"
        yield chain_finding(ChainState.MISSING, link.source, first, last, text)
    elif link.header.seal is not None:
        text = seal_difference(link.header.seal, before.size, before.digest, damaged=before.damaged)
        if text and trusted:
            yield _finding(ChainState.TAMPERED, before, f"{text} ({link.source})")
        elif text:
            text = f"does not follow {before.source}, and its own signature is not the server's"
            yield _finding(ChainState.TAMPERED, link, text)
    elif before.header.seal is not None:
        text = "has format version 1 behind a segment of version 2, which no server writes"
        yield _finding(ChainState.TAMPERED, link, text)


def seal_difference(seal: SegmentSeal, size: int, digest: bytes | None, *, damaged: bool) -> str:
    """The difference of a segment from the seal in the next header; empty if there is none."""
    difference = size - seal.previous_size
    if difference < 0:
        return f"cut off after it was sealed: {-difference} bytes are missing"
    if difference > 0:
        return f"changed after it was sealed: {difference} bytes were added"
    if digest is None or digest == seal.previous_digest:
        return ""
    cause = "all checksums are right, so this is no disk error"
    if damaged:
        cause = "a checksum is wrong too: perhaps the disk failed"
    return f"changed after it was sealed: its SHA-256 is not that in the next header; {cause}"


def _finding(state: ChainState, link: ChainLink, text: str) -> Finding:
    return chain_finding(state, link.source, link.header.number, link.header.number, text)


# --- Judges the signatures in the headers of a journal's segments ---------------------------------
# A signature covers its own header and, by the digests, everything before. So the last valid one
# vouches for earlier segments too, even if those are unsigned or signed with a key that the server
# has replaced since.

#: Digits of a key's identifier in messages.
_SHOWN = 16

Named = tuple[str, SegmentHeader]
Judgement = tuple[ChainState, str] | None


def judge_signatures(headers: Sequence[Named], keys: Sequence[RsaPublicKey]) -> list[Finding]:
    """The findings about the headers of one journal in their order, each with its file.

    Neighbours of which the same is to be said share a finding.
    """
    known = {key_id(key): key for key in keys}
    signed = [header.number for _, header in headers if header.is_signed]
    valid = [header.number for _, header in headers if _is_valid(header, known)]
    right = set(valid)
    judged: list[tuple[Judgement, Named]] = []
    for named in headers:
        _, header = named
        if not header.is_signed:
            judged.append((_unsigned(header, signed), named))
        elif header.number not in right:
            judged.append((_not_valid(header, known, valid), named))
        else:
            judged.append((None, named))
    return list(_grouped(judged))


def _is_valid(header: SegmentHeader, keys: Mapping[bytes, RsaPublicKey]) -> bool:
    seal = header.seal
    key = None if seal is None else keys.get(seal.key_id)
    if seal is None or key is None:
        return False
    return verify_sha256(key, header.signed_bytes(), seal.signature)


def _unsigned(header: SegmentHeader, signed: Sequence[int]) -> Judgement:
    if signed and signed[-1] < header.number:
        return ChainState.TAMPERED, f"not signed, although segment {signed[-1]} before it is"
    reason = "format version 1" if header.seal is None else "the server had no key"
    return ChainState.UNSIGNED, f"not signed ({reason})"


def _not_valid(
    header: SegmentHeader, keys: Mapping[bytes, RsaPublicKey], valid: Sequence[int]
) -> Judgement:
    its_key = b"" if header.seal is None else header.seal.key_id
    shown = its_key.hex()[:_SHOWN]
    if not keys:
        text = f"signed with key {shown}, but there is no key to check the signature with"
        return ChainState.UNCHECKED, text
    if its_key in keys:
        return ChainState.TAMPERED, "the signature in the header is wrong"
    if valid and valid[-1] > header.number:
        text = f"signed with another key, {shown}; the signature of segment {valid[-1]} covers it"
        return ChainState.UNCHECKED, text
    return ChainState.FOREIGN, f"signed with key {shown}, which is not a key of the server"


def _grouped(judged: Iterable[tuple[Judgement, Named]]) -> Iterator[Finding]:
    for judgement, group in groupby(judged, key=lambda pair: pair[0]):
        if judgement is None:
            continue
        members = [named for _, named in group]
        (source, head), (_, tail) = members[0], members[-1]
        state, text = judgement
        if len(members) > 1:
            text = f"segments {head.number} to {tail.number}: {text}"
        yield chain_finding(state, source, head.number, tail.number, text)
