"""Judges the signatures in the headers of a journal's segments.

A signature covers its own header and, by the digests, everything before. So the last valid one
vouches for earlier segments too, even if those are unsigned or signed with a key that the server
has replaced since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from mqis.findings import Finding
from mqis.protocol.journal.findings import ChainState, chain_finding
from mqis.protocol.security.rsa import verify_sha256
from mqis.wire.journal.segmentheader import SegmentHeader
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.security.keyinfo import key_id

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
