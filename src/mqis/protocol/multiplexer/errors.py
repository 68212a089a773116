"""What the layer above may be told when it asks for something. Misuse is a ``ValueError``."""

from __future__ import annotations

from enum import Enum

from mqis.wire.errors import MqisError


class Level(Enum):
    """Whose limit it is that a message has reached."""

    CONNECTION = "connection"
    SESSION = "session"
    PROCESS = "process"


class NotOpen(MqisError):
    """The connection, or the session, is not there or not in a state for this (any more)."""


class Congested(MqisError):
    """Too much is waiting to be sent; ``Writable`` comes when it is worth trying again."""

    def __init__(self, level: Level) -> None:
        super().__init__(f"too much is waiting to be sent on this {level.value}")
        self.level = level

    def __reduce__(self) -> tuple[type[Congested], tuple[Level]]:
        return type(self), (self.level,)
