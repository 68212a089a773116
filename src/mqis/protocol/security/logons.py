"""Failed logons: the waiting times after which an address or account may try again.

Failures are counted three times. ``now`` is an argument; addresses and accounts are keys, made by
the caller.

account at an address   After ``per_account`` failures the pair has to wait: 1 s, then twice as
                        long after every further failure, up to ``wait_s``. While it waits, no
                        password is checked, not even the right one.
address                 The same after ``per_address`` failures, whatever accounts they named.
account                 Failures at all addresses together never lock an account: an attacker who
                        knows an administrator's name could lock him out with that. They make
                        every address wait after its first failure instead of the fifth, which
                        slows down guessing from many addresses; and they raise an alarm.

One failure is forgiven every ``wait_s``, so in the long run an attacker may guess that often.
Attempts that are refused while waiting are not counted: they would extend the wait of users
who only share an address with the attacker. A success clears the failures of that account at
that address, but not those of the address: the attacker may have an account too.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from mqis.protocol.clock import pause_after

#: An account is under attack after this many times ``per_account`` failures at all addresses.
_ATTACK = 4


@dataclass(frozen=True, slots=True)
class LogonLimits:
    """The failures that are allowed without waiting, and the longest wait."""

    per_account: int = 5
    per_address: int = 50
    wait_s: float = 300.0
    #: Keys in each of the three tables; the one with the oldest last failure is evicted.
    remembered: int = 10_000


@dataclass(frozen=True, slots=True)
class Counted:
    """The consequences of a failure."""

    #: Seconds before the next attempt is considered.
    wait_s: float = 0.0
    #: Failures of the account at all addresses if an alarm is due, else 0.
    alarm: int = 0


@dataclass(slots=True)
class _Count:
    failures: int = 0
    #: The time at which the last failure was forgiven.
    since: float = 0.0
    #: The end of the wait.
    until: float = 0.0

    def age(self, now: float, forgive_s: float) -> None:
        forgiven = int(max(0.0, now - self.since) / forgive_s)
        self.failures = max(0, self.failures - forgiven)
        self.since = self.since + forgiven * forgive_s if self.failures else now


class _Table:
    """Failure counts by key, ordered by the time of the last failure."""

    def __init__(self, limits: LogonLimits) -> None:
        self._limits = limits
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def wait_s(self, key: str, now: float) -> float:
        count = self._counts.get(key)
        return 0.0 if count is None else max(0.0, count.until - now)

    def add(self, key: str, most: int, now: float) -> _Count:
        """Counts a failure; from the ``most``-th on, the key has to wait."""
        count = self._counts.setdefault(key, _Count())
        self._counts.move_to_end(key)
        while len(self._counts) > self._limits.remembered:
            self._counts.popitem(last=False)
        count.age(now, self._limits.wait_s)
        count.failures += 1
        excess = count.failures - most
        if excess >= 0:
            count.until = now + pause_after(excess + 1, 1.0, self._limits.wait_s)
        return count

    def forget(self, key: str) -> None:
        self._counts.pop(key, None)


class FailedLogons:
    """The failures of all callers of one server."""

    def __init__(self, limits: LogonLimits | None = None) -> None:
        self.limits = limits or LogonLimits()
        self._addresses = _Table(self.limits)
        self._accounts = _Table(self.limits)
        self._pairs = _Table(self.limits)

    def __len__(self) -> int:
        """The number of keys that are remembered."""
        return len(self._addresses) + len(self._accounts) + len(self._pairs)

    def address_wait_s(self, address: str, now: float) -> float:
        """Seconds that an address has to wait, whatever account it names; 0 if it may try now."""
        return self._addresses.wait_s(address, now)

    def account_wait_s(self, address: str, account: str, now: float) -> float:
        """Seconds that an account has to wait at an address; 0 if its password may be checked."""
        return self._pairs.wait_s(_pair(address, account), now)

    def failed(self, address: str, account: str, now: float, *, exempt: bool = False) -> Counted:
        """Counts a failure of ``account``, '' if none was named.

        An ``exempt`` address never waits as a whole, only its accounts do.
        """
        until = now
        if not exempt:
            until = max(until, self._addresses.add(address, self.limits.per_address, now).until)
        if not account:
            return Counted(until - now)
        attacked = _ATTACK * self.limits.per_account
        failures = self._accounts.add(account, attacked, now).failures
        most = self.limits.per_account if failures <= attacked else 1
        until = max(until, self._pairs.add(_pair(address, account), most, now).until)
        return Counted(until - now, failures if _is_alarming(failures, attacked) else 0)

    def succeeded(self, address: str, account: str) -> None:
        """Forgets the failures of an account at an address."""
        self._pairs.forget(_pair(address, account))


def _pair(address: str, account: str) -> str:
    return f"{account} {address}"


def _is_alarming(failures: int, attacked: int) -> bool:
    """True at the number of failures that means an attack, at twice that, four times and so on."""
    times, rest = divmod(failures, attacked)
    return times > 0 and rest == 0 and times & (times - 1) == 0
