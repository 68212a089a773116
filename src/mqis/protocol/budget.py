"""Budgets: quotas on what callers may hold, by connection, by address and in total.

One ``Budget`` counts one kind of thing: context handles, open lookups, bytes. Every amount that is
taken counts on four levels:

    connection    the association group of the caller
    address       its address; strangers and callers with a name are counted apart there, so that
                  a stranger cannot use up the quota of a user
    anonymous     all strangers together, at any address
    process       all callers together

An amount that does not fit on one of them is refused, and nothing is counted. The code that takes
an amount gives it back, under the same ``Caller``.

What is used up instead of held, such as the bytes that changes add to a journal for ever, has an
``HourlyBudget``: it counts by account, and begins again an hour after the account's first use.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from mqis.protocol.authentication import Identity, has_name


@dataclass(frozen=True, slots=True)
class Caller:
    """The connection, address and identity that an amount is charged to."""

    connection: Hashable
    address: Hashable
    identity: Identity | None = None
    #: True for a caller that has proved no name.
    stranger: bool = field(init=False, compare=False)
    #: What its address is counted by: strangers there apart from users.
    place: Hashable = field(init=False, compare=False)

    def __post_init__(self) -> None:
        stranger = not has_name(self.identity)
        object.__setattr__(self, "stranger", stranger)
        object.__setattr__(self, "place", (self.address, stranger))


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that may be held on each level."""

    connection: int
    address: int
    anonymous: int
    process: int

    @classmethod
    def of(cls, process: int, *, connection: float, address: float) -> Quota:
        """Quotas as shares of the process's; all anonymous callers together get half of it."""
        return cls(
            max(1, int(process * connection)),
            max(1, int(process * address)),
            max(1, process // 2),
            process,
        )


@dataclass(frozen=True, slots=True)
class Shortage:
    """The reason that an amount was refused: the level whose quota it would exceed."""

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
        #: The total that all callers hold.
        self.used = 0
        self._anonymous = 0
        self._addresses: dict[Hashable, int] = {}
        self._connections: dict[Hashable, int] = {}

    def take(self, caller: Caller, amount: int = 1) -> Shortage | None:
        """Charges ``amount`` to ``caller``; if it exceeds a quota, only returns which one."""
        shortage = self.lack(caller, amount)
        if shortage is None:
            self._count(caller, amount)
        return shortage

    def lack(self, caller: Caller, amount: int = 1) -> Shortage | None:
        """Returns the quota that ``amount`` more would exceed, and charges nothing."""
        return None if self._fits(caller, amount) else self._shortage(caller, amount)

    def give_back(self, caller: Caller, amount: int = 1) -> None:
        self._count(caller, -amount)

    def _fits(self, caller: Caller, amount: int) -> bool:
        quota = self.quota
        return (
            self._connections.get(caller.connection, 0) + amount <= quota.connection
            and self._addresses.get(caller.place, 0) + amount <= quota.address
            and self.used + amount <= quota.process
            and not (caller.stranger and self._anonymous + amount > quota.anonymous)
        )

    def _shortage(self, caller: Caller, amount: int) -> Shortage:
        """The first level that an amount which does not fit would exceed."""
        quota = self.quota
        held = self._connections.get(caller.connection, 0)
        if held + amount > quota.connection:
            return Shortage("this connection", held, quota.connection)
        held = self._addresses.get(caller.place, 0)
        if held + amount > quota.address:
            return Shortage("this address", held, quota.address)
        if self.used + amount > quota.process:
            return Shortage("this server", self.used, quota.process)
        return Shortage("all anonymous callers together", self._anonymous, quota.anonymous)

    def _count(self, caller: Caller, amount: int) -> None:
        self.used += amount
        if caller.stranger:
            self._anonymous += amount
        _add(self._connections, caller.connection, amount)
        _add(self._addresses, caller.place, amount)


def _add(counts: dict[Hashable, int], key: Hashable, amount: int) -> None:
    """Adds to a count, and removes entries that have become zero."""
    held = counts.get(key, 0) + amount
    if held:
        counts[key] = held
    else:
        counts.pop(key, None)


class Charge:
    """The share of a budget that one growing thing holds; ``end`` gives all of it back."""

    __slots__ = ("_budget", "amount", "caller")

    def __init__(self, budget: Budget, caller: Caller) -> None:
        self._budget = budget
        self.caller = caller
        self.amount = 0

    def change(self, amount: int) -> Shortage | None:
        """Sets the amount held; if that exceeds a quota, keeps the old one and returns which."""
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


HOUR_S = 3600.0
#: Accounts whose hours have ended are forgotten when there are more accounts than this.
_MANY = 1024


@dataclass(slots=True)
class _Hour:
    """What one account has used since its first use, until the hour ends."""

    ends: float
    used: int = 0
    #: A refusal of this hour was told.
    told: bool = False


@dataclass(frozen=True, slots=True)
class UsedUp:
    """The reason that an amount was refused: so much of an hour's budget is used."""

    used: int
    most: int
    #: When the next hour begins, in seconds since 1970.
    ends: float
    #: The first refusal of this hour.
    first: bool


class HourlyBudget:
    """Counts what accounts use up of one kind of thing in an hour."""

    __slots__ = ("_crowded", "_hours", "refusals")

    def __init__(self) -> None:
        #: Amounts that were refused since the start.
        self.refusals = 0
        self._hours: dict[Hashable, _Hour] = {}
        self._crowded = _MANY

    def use(self, account: Hashable, amount: int, most: int, now: float) -> UsedUp | None:
        """Charges ``amount``; if more than ``most`` were used then, only returns the reason.

        The first use of an hour is always allowed, or a large one never would be.
        """
        hour = self._hour(account, now)
        if not hour.used or hour.used + amount <= most:
            hour.used += amount
            return None
        self.refusals += 1
        first, hour.told = not hour.told, True
        return UsedUp(hour.used, most, hour.ends, first)

    def give_back(self, account: Hashable, amount: int) -> None:
        """Takes back what was charged for something that did not happen."""
        hour = self._hours.get(account)
        if hour is not None:  # else it has ended
            hour.used = max(0, hour.used - amount)

    def _hour(self, account: Hashable, now: float) -> _Hour:
        hour = self._hours.get(account)
        # A clock that was set back must not make an hour longer.
        if hour is None or not now < hour.ends <= now + HOUR_S:
            if len(self._hours) >= self._crowded:
                self._hours = {a: h for a, h in self._hours.items() if h.ends > now}
                self._crowded = max(_MANY, 2 * len(self._hours))
            hour = self._hours[account] = _Hour(now + HOUR_S)
        return hour
