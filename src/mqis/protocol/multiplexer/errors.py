"""Errors raised to the layer above. Misuse is a ``ValueError``."""

from __future__ import annotations

from enum import Enum

from mqis.wire.errors import MqisError


class LimitLevel(Enum):
    """The level whose limit a message has reached."""

    CONNECTION = "connection"
    SESSION = "session"
    PROCESS = "process"


class NotOpen(MqisError):
    """The connection or session does not exist, or its state does not allow the operation."""


class Congested(MqisError):
    """Too much waits to be sent; the event ``Writable`` follows when there is room again."""

    def __init__(self, level: LimitLevel) -> None:
        super().__init__(f"too much is waiting to be sent on this {level.value}")
        self.level = level

    def __reduce__(self) -> tuple[type[Congested], tuple[LimitLevel]]:
        return type(self), (self.level,)
