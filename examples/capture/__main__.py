"""Writes a capture of a small enterprise at work: ``python -m examples.capture FILE``."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.capture.scene import record


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.capture", description=__doc__)
    parser.add_argument("file", type=Path)
    target = parser.parse_args().file
    with TemporaryDirectory() as directory:
        recorder = asyncio.run(record(Path(directory)))
    target.write_bytes(recorder.pcap())
    print(f"wrote {target}: {len(recorder.conversations)} conversations")


if __name__ == "__main__":
    main()
