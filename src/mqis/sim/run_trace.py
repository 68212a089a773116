"""The trace of a run: a digest to compare runs by and, if wanted, readable lines.

And the exception that checkers raise, which ends it.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from struct import Struct

from mqis.wire.errors import WireError
from mqis.wire.mqdsrp.describing import TRACE, operation_name
from mqis.wire.mqdsrp.describing import describe as describe_message
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import decode_message
from mqis.wire.mqqb.packet import UserMessage, decode_packet

_STAMP = Struct("<d")


class SimTrace:
    """Records every step, message and commit of a run, in order."""

    def __init__(self, *, keep: bool = False) -> None:
        self.lines: list[str] | None = [] if keep else None
        #: The number of each kind of fault and decision.
        self.counts: Counter[str] = Counter()
        self._digest = blake2b(digest_size=16)

    def note(
        self, at: float, kind: str, text: str, data: bytes = b"", *, shown: str | None = None
    ) -> None:
        """Records an event; lines have ``shown`` instead of ``text``, the digest does not."""
        self.counts[kind] += 1
        self._digest.update(_STAMP.pack(at) + kind.encode() + text.encode() + data)
        if self.lines is not None:
            self.lines.append(f"{at:12.3f}  {kind:<18} {shown or text}")

    def count(self, kind: str, by: int = 1) -> None:
        self.counts[kind] += by

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def operation_of(body: bytes) -> str:
    """The name of the message's operation; part of the digest of a run."""
    return operation_name(operation_in(body))


def describe(body: bytes) -> str:
    """The message in one line, or the reason why it cannot be decoded."""
    try:
        return describe_message(decode_message(body), TRACE)
    except WireError as error:
        return f"damaged: {error}"


# --- Decodes the packets of a simulated network ---------------------------------------------------


def message_in(packet: bytes) -> UserMessage | None:
    """The message in a packet; None if the bytes are something else or damaged."""
    try:
        found = decode_packet(packet)
    except WireError:
        return None
    return found if isinstance(found, UserMessage) else None


class Violation(Exception):
    """A rule does not hold; ``rule`` names it, ``detail`` says where it failed."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail

    def __reduce__(self) -> tuple[type[Violation], tuple[str, str]]:
        return type(self), (self.rule, self.detail)
