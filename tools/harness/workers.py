"""A client that changes only its own queues, so that it knows their state."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from tools.harness.ledger import Ledger, State, queue_path

#: The errors of a server that does not know whether the authority has made a change.
_UNKNOWN = (
    HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER,
    HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE,
)


class Calls(Protocol):
    """The calls of a client. A call that fails raises; one that reads may judge the answer."""

    async def create(self, path: str, label: str) -> None: ...

    async def change(self, path: str, label: str) -> None: ...

    async def delete(self, path: str) -> None: ...

    async def read(self, path: str | None, label: State) -> None:
        """Reads a queue of this label, or any other if there is none."""

    async def look_up(self, path: str | None, label: State) -> None:
        """Looks a queue up by its label, or any other if there is none."""


@dataclass
class Worker:
    """Chooses operations by their weights, and records the answers in the ledger."""

    number: int
    ledger: Ledger
    random: Random
    #: The weights of create, change, delete, read and look_up.
    mix: Mapping[str, int]
    machines: Sequence[str]
    #: With so many queues it deletes instead of creating, so that the directory stays small.
    most: int
    #: Its queues, whose labels are known for certain.
    labels: dict[str, str] = field(default_factory=dict)
    _made: int = 0

    def choose(self) -> str:
        kind = self.random.choices(list(self.mix), list(self.mix.values()))[0]
        if kind in ("change", "delete") and not self.labels:
            return "create"
        if kind == "create" and len(self.labels) >= self.most:
            return "delete"
        return kind

    async def step(self, calls: Calls, kind: str) -> None:
        """Carries out one operation; raises what the call raises, after recording it."""
        path = self.random.choice(sorted(self.labels)) if self.labels else None
        label = f"{self.number} {self.random.getrandbits(64):x}"
        if kind == "read":
            await calls.read(path, self.labels.get(path or ""))
        elif kind == "look_up":
            await calls.look_up(path, self.labels.get(path or ""))
        elif kind == "create":
            self._made += 1
            path = queue_path(self.random.choice(self.machines), self.number, self._made)
            await self._change(path, label, calls.create(path, label))
        elif path is not None and kind == "change":
            await self._change(path, label, calls.change(path, label))
        elif path is not None:
            await self._change(path, None, calls.delete(path))

    async def _change(self, path: str, state: State, call: Awaitable[None]) -> None:
        self.ledger.attempt(path, state)
        before = self.labels.pop(path, None)
        try:
            await call
        except DirectoryError as error:
            if error.hresult in _UNKNOWN:
                self.ledger.unknown += 1
                raise
            self.ledger.refuse(path, state)
            self._keep(path, before)
            raise
        except BaseException:
            # Without an answer it may have the old or the new state: it is left alone from now on.
            self.ledger.unknown += 1
            raise
        self.ledger.done(path, state)
        self._keep(path, state)

    def _keep(self, path: str, state: State) -> None:
        if state is not None:
            self.labels[path] = state
