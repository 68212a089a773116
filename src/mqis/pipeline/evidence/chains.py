"""Judges the chains of journals: segments that were changed, removed or signed by somebody else."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mqis.findings import Finding
from mqis.pipeline.evidence.findings import EvidenceKind, evidence
from mqis.pipeline.sources.files import parent_of, source_file
from mqis.pipeline.sources.inventory import SegmentFile
from mqis.protocol.journal import ChainLink, ChainState, judge_chain
from mqis.wire.mqds.keys import RsaPublicKey

_KINDS: dict[str, EvidenceKind] = {
    ChainState.TAMPERED: EvidenceKind.TAMPERED,
    ChainState.FOREIGN: EvidenceKind.FOREIGN,
    ChainState.MISSING: EvidenceKind.MISSING_SEGMENTS,
}
_NUMBERED = re.compile(r"segment-([0-9]{1,18})\.mqj")


@dataclass(frozen=True, slots=True)
class JournalChain:
    """All segment files of one server's journal, and what else is known about them."""

    server: str
    segments: Sequence[SegmentFile]
    copies: Sequence[SegmentFile] = ()
    #: The files with damaged records.
    damaged: Collection[str] = ()
    #: The numbers, by their names, of files whose headers cannot be read.
    unreadable: Collection[int] = ()

    def findings(self, keys: Sequence[RsaPublicKey]) -> Iterator[Finding]:
        """The faults; ``keys`` are those that the directory has of the server."""
        copied = {copy.path for copy in self.copies}
        for links in self._journals():
            for finding in judge_chain(links, keys):
                kind = _KINDS.get(finding.check)
                if kind is None or finding.where in copied or self._is_elsewhere(finding):
                    continue
                where, first, last = finding.where, finding.first, finding.last
                yield evidence(kind, self.server, finding.what, where, first=first, last=last)

    def signature(self, keys: Sequence[RsaPublicKey]) -> str:
        """The state of the newest signature, which covers everything before it."""
        headers = [segment.header for segment in self.segments if segment.header is not None]
        newest = max(headers, key=lambda header: header.number, default=None)
        if newest is None or not newest.is_signed:
            return "unsigned"
        if not keys:
            return "unchecked"
        # The newest header alone: nothing before it, so only its own signature can be at fault.
        alone = judge_chain([ChainLink("", newest, 0)], keys)
        faults = (ChainState.TAMPERED, ChainState.FOREIGN)
        return "wrong" if any(finding.check in faults for finding in alone) else "valid"

    def _journals(self) -> Iterator[list[ChainLink]]:
        """The links of each journal.

        Segments may lie in several directories, as in an archive. If numbers are there twice,
        there are several journals, each in its directory: a restored server begins a new one.
        """
        numbers = {segment.number for segment in self.segments}
        if len(numbers) == len(self.segments):
            yield [self._link(segment) for segment in self.segments if segment.header]
            return
        places: dict[str, list[SegmentFile]] = defaultdict(list)
        for segment in (*self.segments, *self.copies):
            places[parent_of(segment.path)].append(segment)
        for _, segments in sorted(places.items()):
            yield [self._link(segment) for segment in segments if segment.header]

    def _link(self, segment: SegmentFile) -> ChainLink:
        assert segment.header is not None
        is_damaged = segment.path in self.damaged
        digests = segment.digest, is_damaged, segment.snapshot_digest
        return ChainLink(segment.path, segment.header, segment.size, *digests)

    def _is_elsewhere(self, finding: Finding) -> bool:
        """Returns whether missing segments are in another directory, or cannot be read."""
        if finding.check != ChainState.MISSING:
            return False
        listed = {segment.number for segment in self.segments} | set(self.unreadable)
        present = sum(map(finding.covers, listed))
        return present == finding.length


def unreadable_numbers(
    damaged: Iterable[str], segments: Iterable[SegmentFile]
) -> defaultdict[str, set[int]]:
    """By directory: the numbers, in their names, of segments whose headers cannot be read."""
    readable = {segment.path for segment in segments}
    found: defaultdict[str, set[int]] = defaultdict(set)
    for path in map(source_file, set(damaged) - readable):
        if match := _NUMBERED.fullmatch(path.name):
            found[str(path.parent)].add(int(match[1]))
    return found
