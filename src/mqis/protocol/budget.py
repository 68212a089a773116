"""Budgets: how much of something callers may hold, by connection, by address and in all.

One ``Budget`` counts one kind of thing: context handles, open lookups, bytes. Every amount that is
taken counts on four levels:

    connection    the association group that asks
    address       its address; callers with and without an identity are counted apart there, so
                  that a stranger cannot use up what somebody who logged on has from the same place
    anonymous     all callers without an identity together, wherever they are
    process       everybody

An amount that does not fit on one of them is refused, and nothing is counted. Whoever took an
amount gives it back, under the same ``Caller``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose account an amount is taken from."""

    connection: Hashable
    address: Hashable
    anonymous: bool


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that may be held on each level."""

    connection: int
    address: int
    anonymous: int
    process: int

    @classmethod
    def of(cls, process: int, *, connection: float, address: float) -> Quota:
        """Shares of what the process may hold; callers without an identity get half of it."""
        return cls(
            max(1, int(process * connection)),
            max(1, int(process * address)),
            max(1, process // 2),
            process,
        )


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why an amount was refused: the level that has no room for it."""

    level: str
    held: int
    most: int

    def __str__(self) -> str:
        return f"{self.level}: {self.held} of {self.most} held"


class Budget:
    """Counts what callers hold of one kind of thing."""

    __slots__ = ("_addresses", "_anonymous", "_connections", "quota", "used")

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        #: What everybody holds together.
        self.used = 0
        self._anonymous = 0
        self._addresses: Counter[Hashable] = Counter()
        self._connections: Counter[Hashable] = Counter()

    def take(self, caller: Caller, amount: int = 1) -> Shortage | None:
        """Count ``amount`` for ``caller``; if it does not fit, count nothing and tell why."""
        shortage = self._shortage(caller, amount)
        if shortage is None:
            self._count(caller, amount)
        return shortage

    def give_back(self, caller: Caller, amount: int = 1) -> None:
        self._count(caller, -amount)

    def _shortage(self, caller: Caller, amount: int) -> Shortage | None:
        quota = self.quota
        place = (caller.address, caller.anonymous)
        levels = [
            ("this connection", self._connections[caller.connection], quota.connection),
            ("this address", self._addresses[place], quota.address),
            ("this server", self.used, quota.process),
        ]
        if caller.anonymous:
            levels.append(("all anonymous callers together", self._anonymous, quota.anonymous))
        for level, held, most in levels:
            if held + amount > most:
                return Shortage(level, held, most)
        return None

    def _count(self, caller: Caller, amount: int) -> None:
        self.used += amount
        if caller.anonymous:
            self._anonymous += amount
        _add(self._connections, caller.connection, amount)
        _add(self._addresses, (caller.address, caller.anonymous), amount)


def _add(counter: Counter[Hashable], key: Hashable, amount: int) -> None:
    """Keep no entry for whoever holds nothing."""
    held = counter[key] + amount
    if held:
        counter[key] = held
    else:
        counter.pop(key, None)


class Charge:
    """What one thing holds of a budget while it grows; all of it is given back at its end."""

    __slots__ = ("_budget", "amount", "caller")

    def __init__(self, budget: Budget, caller: Caller) -> None:
        self._budget = budget
        self.caller = caller
        self.amount = 0

    def change(self, amount: int) -> Shortage | None:
        """Hold ``amount`` from now on instead of what it was; if that is too much, as before."""
        more = amount - self.amount
        if more > 0:
            shortage = self._budget.take(self.caller, more)
            if shortage is not None:
                return shortage
        elif more < 0:
            self._budget.give_back(self.caller, -more)
        self.amount = amount
        return None

    def end(self) -> None:
        self.change(0)
