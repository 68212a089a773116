"""Rows added up by client, server and protocol."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.capture.row import DecodedRow


@dataclass(slots=True)
class Conversation:
    """The totals of one protocol between a client and a port of a server."""

    client: str
    server: str
    port: int
    transport: str
    carrier: str
    protocol: str
    streams: set[int] = field(default_factory=set)
    messages: int = 0
    bytes: int = 0
    errors: int = 0
    first_ns: int | None = None
    last_ns: int | None = None

    def add(self, row: DecodedRow) -> None:
        self.streams.add(row.stream)
        if row.error is None:
            self.messages += 1
        else:
            self.errors += 1
        self.bytes += row.length
        if row.time_ns is not None:
            self.first_ns = min(self.first_ns or row.time_ns, row.time_ns)
            self.last_ns = max(self.last_ns or 0, row.time_ns)


class Summary:
    """Conversations by endpoints and protocol; ``damage`` holds the errors of the file."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int, str, str], Conversation] = {}
        self.damage: list[DecodedRow] = []

    def add(self, row: DecodedRow) -> None:
        if not row.carrier:
            self.damage.append(row)
            return
        client, server, port = row.source, row.destination, row.destination_port
        if not row.to_server:
            client, server, port = row.destination, row.source, row.source_port
        key = (client, server, port, row.transport, row.protocol)
        found = self._found.get(key)
        if found is None:
            ends = (client, server, port, row.transport, row.carrier, row.protocol)
            found = self._found[key] = Conversation(*ends)
        found.add(row)

    def conversations(self) -> list[Conversation]:
        """All conversations, those with the most messages first."""
        return sorted(self._found.values(), key=lambda c: (-c.messages, -c.bytes, c.client, c.port))
