"""Changes journals as somebody would who wants nobody to notice: all checksums stay right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mqis.lab.generate.faults import PlantedEvidence
from mqis.lab.generate.keys import generated_key
from mqis.lab.generate.spoiling import whole_records
from mqis.storage.journal.files import segments
from mqis.wire.journal import encode_record, segment_header

_INTRUDER = "intruder"


def tamper(directory: Path, server: str) -> PlantedEvidence:
    """Changes the time of a record of the first segment, which the second one seals."""
    number, path = next(iter(segments(directory).items()))
    found = whole_records(path)
    victim = found[len(found) // 2]
    changed = replace(victim.record, time_us=victim.record.time_us + 1)
    data = path.read_bytes()
    end = victim.offset + victim.length
    path.write_bytes(data[: victim.offset] + encode_record(victim.lsn, changed) + data[end:])
    return PlantedEvidence("tampered", server, str(path), None, number, number)


def resign(directory: Path, server: str) -> PlantedEvidence:
    """Signs the header of the last segment but one with a key that is not the server's."""
    number, path = list(segments(directory).items())[-2]
    data, key = path.read_bytes(), generated_key(_INTRUDER)
    header, start = segment_header(data)
    signed = header.signed_with(key.key_id, key.sign_sha256)
    path.write_bytes(signed.to_bytes() + data[start:])
    return PlantedEvidence("foreign", server, str(path), None, number, number)
