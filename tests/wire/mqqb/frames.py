"""The packets of tests/data: the example of MS-MQQB 4.1, and the hand-made vectors."""

from __future__ import annotations

import json
from pathlib import Path

_DATA = Path(__file__).parents[2] / "data"


def _frames() -> dict[int, bytes]:
    lines = (_DATA / "mqqb" / "frames.txt").read_text().splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    return {int(row.split()[0]): bytes.fromhex(row.rpartition(":")[2]) for row in rows}


FRAMES = _frames()
#: Frame 7 with the whole body that its header announces, and padding.
FRAMES[7] += b"a\0" * 1000 + bytes(2)

PACKETS: dict[str, bytes] = {
    name: bytes.fromhex(octets)
    for name, octets in json.loads((_DATA / "mqdsrp" / "vectors.json").read_text())[
        "transport_packets"
    ].items()
}
