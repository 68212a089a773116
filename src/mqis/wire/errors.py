"""The root of the error hierarchy, and the only error that decoding raises."""

from __future__ import annotations


class MqisError(Exception):
    """An error in the input or the surroundings of mqis."""


class WireError(MqisError):
    """The bytes are wrong; ``reason`` and ``offset`` say why and where."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[WireError], tuple[str, int]]:
        return type(self), (self.reason, self.offset)
