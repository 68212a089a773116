"""Random identifiers from the operating system."""

from __future__ import annotations

import os

from mqis.wire.guid import Guid


class SystemEntropy:
    """``ports.Entropy`` for real servers."""

    def guid(self) -> Guid:
        """A random GUID (RFC 9562 5.4), as ``uuid.uuid4`` makes it, in a third of the time."""
        octets = bytearray(os.urandom(16))
        octets[7] = octets[7] & 0x0F | 0x40  # the version, in packet order
        octets[8] = octets[8] & 0x3F | 0x80
        return Guid(bytes(octets))
