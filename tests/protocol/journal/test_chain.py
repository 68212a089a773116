"""The judgement of a chain by headers, sizes and digests alone, as the pipeline asks for it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest

from mqis.findings import Finding
from mqis.protocol.journal import ChainLink, ChainState, judge_chain
from mqis.protocol.security.rsa import verify_sha256
from mqis.runtime.node.signer import MachineKey
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader, SegmentSeal

SERVER = Guid(b"s" * 16)
S = ChainState


@cache
def own() -> MachineKey:
    return MachineKey.generate()


@cache
def other() -> MachineKey:
    return MachineKey.generate()


def chain(
    keys: Sequence[MachineKey | None], *, old: int = 0, first: int = 1, snapshot: bool = False
) -> list[ChainLink]:
    """Links of 1,000 records each, signed with these keys; ``old`` ones have version 1 instead."""
    links: list[ChainLink] = []
    for number, key in enumerate(keys, first):
        lsn = 1000 * (number - 1) + 1
        header = SegmentHeader("PSC1", SERVER, number, lsn)
        if snapshot:
            header = replace(header, snapshot="snapshot-1.jsonl", snapshot_lsn=lsn - 1)
        if number - first >= old:
            before = links[-1] if links else None
            digest = None if before is None else before.digest
            seal = SegmentSeal(digest or bytes(32), 0 if before is None else before.size)
            header = replace(header, seal=seal)
            if key is not None:
                header = header.signed_with(key.key_id, key.sign_sha256)
        links.append(ChainLink.of(f"segment-{number}", header.to_bytes() + b"records"))
    return links


State = tuple[str, int | None, int | None]


def states(findings: list[Finding]) -> list[State]:
    return [(finding.check, finding.first, finding.last) for finding in findings]


def judged(links: Sequence[ChainLink], *keys: MachineKey) -> list[State]:
    return states(judge_chain(links, [key.public for key in keys]))


def test_a_signature_is_that_of_the_library() -> None:
    signature = own().sign_sha256(b"data")
    assert verify_sha256(own().public, b"data", signature)
    assert not verify_sha256(own().public, b"date", signature)
    assert not verify_sha256(own().public, b"data", signature[::-1])
    assert not verify_sha256(other().public, b"data", signature)
    assert not verify_sha256(own().public, b"data", signature[1:])


def test_a_sound_chain_in_any_order() -> None:
    links = chain([own()] * 4)
    assert judged(links, own()) == []
    assert judged(links[::-1], own(), other()) == []
    assert judged([], own()) == []
    assert judged(pickle.loads(pickle.dumps(links)), own()) == []


def test_without_digests_the_headers_are_judged() -> None:
    links = [replace(link, digest=None) for link in chain([own()] * 4)]
    assert judged(links, own()) == []
    assert judged([links[0], *links[2:]], own()) == [(S.MISSING, 2, 2)]
    shorter = replace(links[1], size=links[1].size - 1)
    assert judged([links[0], shorter, *links[2:]], own()) == [(S.TAMPERED, 2, 2)]
    longer = replace(links[1], size=links[1].size + 1)
    (finding,) = judge_chain([links[0], longer, *links[2:]], [own().public])
    assert (finding.check, finding.first) == (S.TAMPERED, 2)
    assert "1 bytes were added" in finding.what


def test_another_digest_is_named_where_it_is() -> None:
    links = chain([own()] * 4)
    changed = replace(links[1], digest=sha256(b"other").digest())
    (finding,) = judge_chain([links[0], changed, *links[2:]], [own().public])
    assert (finding.check, finding.first, finding.where) == (S.TAMPERED, 2, "segment-2")
    assert "no disk error" in str(finding)
    damaged = replace(changed, damaged=True)
    (finding,) = judge_chain([links[0], damaged, *links[2:]], [own().public])
    assert "perhaps the disk failed" in finding.what
    assert finding.is_fault


def test_the_open_end_is_not_judged() -> None:
    links = chain([own()] * 2)
    growing = replace(links[1], size=10**6, digest=sha256(b"more").digest())
    assert judged([links[0], growing], own()) == []


@pytest.mark.parametrize(
    ("gone", "found", "text"),
    [
        ((1,), (2, 2), "segment 2 is missing before it (records up to 2000)"),
        ((1, 2), (2, 3), "segments 2 to 3 are missing before it (records up to 3000)"),
        ((0,), (1, 1), "segment 1 before it: missing, and it does not begin at a snapshot"),
        (
            (0, 1, 2),
            (1, 3),
            "segments 1 to 3 before it: missing, and it does not begin at a snapshot",
        ),
    ],
)
def test_missing_segments(gone: tuple[int, ...], found: tuple[int, int], text: str) -> None:
    links = [link for index, link in enumerate(chain([own()] * 5)) if index not in gone]
    (finding,) = judge_chain(links, [own().public])
    assert (finding.check, finding.first, finding.last) == (S.MISSING, *found)
    assert finding.what == text


def test_a_missing_number_that_is_huge_costs_nothing() -> None:
    links = chain([None])
    far = replace(links[0], header=replace(links[0].header, number=2**64 - 1))
    assert (S.MISSING, 2, 2**64 - 2) in judged([*links, far])


def test_history_may_begin_at_a_snapshot() -> None:
    links = chain([own()] * 2, first=5, snapshot=True)
    (finding,) = judge_chain(links, [own().public])
    assert (finding.check, finding.first, finding.last) == (S.PRUNED, 1, 4)
    assert not finding.is_fault


def test_segments_that_are_there_twice_count_once() -> None:
    links = chain([own()] * 3)
    copies = [replace(link, source=f"copy/{link.source}") for link in links]
    assert judged([*links, *copies], own()) == []
    older = replace(links[2], size=links[2].size - 3, digest=sha256(b"shorter").digest())
    assert judged([*links, older], own()) == [], "a copy from before the segment grew"
    forged = replace(links[1], source="forged", digest=sha256(b"x").digest())
    for mixed in ([*links, forged], [forged, *links]):
        (finding,) = judge_chain(mixed, [own().public])
        assert (finding.check, finding.where) == (S.TAMPERED, "forged")


def test_a_segment_of_another_server() -> None:
    links = chain([own()] * 2)
    stranger = replace(links[1].header, server="X", server_id=Guid(b"x" * 16))
    found = judged([links[0], replace(links[1], header=stranger)])
    assert (S.TAMPERED, 2, 2) in found


# --- signatures -----------------------------------------------------------------------------------


def test_without_a_key_signatures_are_not_checked() -> None:
    (finding,) = judge_chain(chain([own()] * 3))
    assert (finding.check, finding.first, finding.last) == (S.UNCHECKED, 1, 3)
    assert own().key_id.hex()[:16] in finding.what
    assert not finding.is_fault


def test_a_whole_chain_signed_with_another_key() -> None:
    assert judged(chain([other()] * 3), own()) == [(S.FOREIGN, 1, 3)]
    assert S.FOREIGN.is_fault


def test_an_end_signed_with_another_key() -> None:
    assert judged(chain([own(), own(), other()]), own()) == [(S.FOREIGN, 3, 3)]


def test_a_replaced_key_is_covered_by_the_new_one() -> None:
    links = chain([other(), other(), own()])
    assert judged(links, own()) == [(S.UNCHECKED, 1, 2)]
    assert judged(links, own(), other()) == []


def test_a_changed_header_breaks_its_signature() -> None:
    links = chain([own()] * 2)
    header = replace(links[1].header, first_lsn=5)
    assert judged([links[0], replace(links[1], header=header)], own()) == [(S.TAMPERED, 2, 2)]


def test_old_and_unsigned_beginnings_are_said() -> None:
    links = chain([None, None, None, own()], old=2)
    first, second = judge_chain(links, [own().public])
    assert states([first, second]) == [(S.UNSIGNED, 1, 2), (S.UNSIGNED, 3, 3)]
    assert "format version 1" in first.what
    assert "no key" in second.what
    changed = replace(links[1], digest=sha256(b"x").digest())
    found = judged([links[0], changed, *links[2:]], own())
    assert (S.TAMPERED, 2, 2) in found, "the first header of version 2 seals the last of version 1"


def test_signatures_cannot_be_dropped_from_the_end() -> None:
    assert judged(chain([own(), own(), None]), own()) == [(S.TAMPERED, 3, 3)]
    assert judged(chain([own(), None, own()]), own()) == [(S.UNSIGNED, 2, 2)]


def test_no_version_1_follows_version_2() -> None:
    links = chain([own()] * 2)
    old = replace(links[1], header=replace(links[1].header, seal=None))
    assert (S.TAMPERED, 2, 2) in judged([links[0], old], own())


def test_segments_of_two_servers_are_no_chain() -> None:
    first, second = chain([None, None])
    stranger = replace(second.header, server="PSC9", server_id=Guid(b"t" * 16))
    found = judge_chain([first, replace(second, header=stranger)])
    assert "belongs to PSC9 and not to PSC1" in [finding.what for finding in found]


def test_two_segments_of_one_number() -> None:
    first, second = chain([None, None])
    again = replace(second, source="copy", header=replace(second.header, first_lsn=7))
    found = judge_chain([first, second, again])
    assert any("another segment 2 than" in finding.what for finding in found)


def test_one_altered_snapshot_that_several_segments_name() -> None:
    links = []
    for link in chain([None, None, None], snapshot=True):
        assert link.header.seal is not None
        header = replace(
            link.header,
            snapshot="snapshot-1.jsonl",
            seal=replace(link.header.seal, snapshot_digest=b"d" * 32),
        )
        links.append(replace(link, header=header, snapshot_digest=b"e" * 32))
    found = [f for f in judge_chain(links) if "its SHA-256 is not that in the header" in f.what]
    assert [(f.where, f.check) for f in found if f.where.startswith("snapshot")] == [
        ("snapshot-1.jsonl", S.TAMPERED)
    ]


def test_an_old_format_behind_a_new_one() -> None:
    first, second = chain([None, None])
    found = judge_chain([first, replace(second, header=replace(second.header, seal=None))])
    (finding,) = [finding for finding in found if "which no server writes" in finding.what]
    assert (finding.check, finding.first, finding.where) == (S.TAMPERED, 2, second.source)


def test_a_foreign_segment_that_does_not_follow() -> None:
    """The header that contradicts the one before is not believed: it is the one at fault."""
    first, second = chain([own(), other()])
    found = judge_chain([replace(first, digest=b"x" * 32), second], [own().public])
    assert any("does not follow" in f.what and f.where == second.source for f in found)
