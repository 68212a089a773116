"""The root of the error hierarchy, and the one error that decoding raises."""

from __future__ import annotations


class MqisError(Exception):
    """Whatever mqis reports as wrong with its input or surroundings."""


class WireError(MqisError):
    """The bytes are wrong: where, and why."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[WireError], tuple[str, int]]:
        return type(self), (self.reason, self.offset)
