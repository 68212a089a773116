"""What a caller's changes cost: their number and their bytes, charged to the caller's account.

Every change stays in the journal, and in that of every replica, for ever. The server that a call
reaches charges it, whoever executes it. A change that fails here costs nothing; one that was sent
to another server does, since messages are kept in journals too, refused ones included.
Administrators are not charged, and neither are servers: their messages come by another way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mqis.protocol.budget import HourlyBudget, UsedUp
from mqis.protocol.directory.guard import Allowance
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.ownchange import NotAuthority, OwnChange
from mqis.protocol.errors import DirectoryError
from mqis.runtime.budgets import Budgets
from mqis.runtime.changelog import Origin
from mqis.texts import moment
from mqis.wire.hresult import HResult
from mqis.wire.security.sid import Sid

T = TypeVar("T")

audit = logging.getLogger("mqis.audit")


@dataclass(slots=True)
class Spending:
    """The charges of one call."""

    budgets: Budgets
    allowance: Allowance
    account: Sid
    origin: Origin
    now: float
    _charged: list[tuple[HourlyBudget, int]] = field(default_factory=list)

    def charging(self, operation: Callable[[DirectoryEvents], T]) -> Callable[[DirectoryEvents], T]:
        """The operation, with a charge for each change before it is made or sent."""

        def charged(events: DirectoryEvents) -> T:
            self.give_back()  # of a first attempt
            permit = events.permit

            def permit_and_charge(change: OwnChange) -> None:
                if permit is not None:
                    permit(change)
                self._charge(change)

            try:
                return operation(replace(events, permit=permit_and_charge))
            except NotAuthority:
                raise
            except BaseException:
                self.give_back()
                raise

        return charged

    def give_back(self) -> None:
        with self.budgets.hours:
            for budget, amount in self._charged:
                budget.give_back(self.account, amount)
        self._charged.clear()

    def _charge(self, change: OwnChange) -> None:
        allowance = self.allowance
        changes, written = self.budgets.changes, self.budgets.written
        self._use(changes, 1, allowance.max_changes, "changes", "max_changes_per_hour")
        size, most = change.size, allowance.max_written_bytes
        self._use(written, size, most, "bytes", "max_written_mb_per_hour")

    def _use(self, budget: HourlyBudget, amount: int, most: int, what: str, key: str) -> None:
        with self.budgets.hours:
            refused = budget.use(self.account, amount, most, self.now)
        if refused is None:
            self._charged.append((budget, amount))
            return
        text = _words(self.account, refused, what, key)
        if refused.first:
            details = {"user": self.origin.user, "peer": self.origin.peer}
            audit.warning(
                "over budget: %s; more refusals of this hour are only counted",
                text,
                extra={"details": details},
            )
        raise DirectoryError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, text)


def _words(account: Sid, refused: UsedUp, what: str, key: str) -> str:
    return (
        f"{account} has used {refused.used:,} of the {refused.most:,} {what} that an hour allows "
        f"(security.{key}); the next hour begins at {moment(refused.ends)}"
    )
