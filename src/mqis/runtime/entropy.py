"""Identifiers from the system's source of randomness."""

from __future__ import annotations

from uuid import uuid4

from mqis.wire.guid import Guid


class SystemEntropy:
    """``ports.Entropy`` for real servers."""

    def guid(self) -> Guid:
        return Guid.from_big_endian(uuid4().bytes)
