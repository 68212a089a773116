"""Identifiers from the system's source of randomness."""

from __future__ import annotations

import os

from mqis.wire.guid import Guid


class SystemEntropy:
    """``ports.Entropy`` for real servers."""

    def guid(self) -> Guid:
        """A random GUID (RFC 9562 5.4), as ``uuid.uuid4`` makes it, in a third of the time."""
        return Guid.version_4(os.urandom(16))
