"""The specification's examples, from tests/data/cmp/vectors.txt."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).parents[2] / "data" / "cmp" / "vectors.txt"


def _read() -> dict[str, bytes]:
    lines = _FILE.read_text(encoding="ascii").splitlines()
    pairs = (line.split(": ") for line in lines if line and not line.startswith("#"))
    return {name: bytes.fromhex(octets) for name, octets in pairs}


VECTORS = _read()
#: The body of the example's user message: guidTx, isoLevel, szDesc.
BODY = VECTORS["boxcar"][64:124]
