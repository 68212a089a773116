"""Logons to a server: replaceable accounts, and the counting of failed logons.

A failed logon is counted (``protocol.logons`` decides how long to wait) and leaves an audit line
with the peer's address. Connections and S_DSValidateServer share one authenticator and one count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from mqis.config.logs import details
from mqis.protocol.authentication import (
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthLevel,
    Identity,
    SecurityContext,
    has_name,
)
from mqis.protocol.logons import FailedLogons, LogonLimits
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account
from mqis.runtime.peers import computer_of, is_loopback
from mqis.server.accounts import AccountsError, AccountsFile

log = logging.getLogger(__name__)
audit = logging.getLogger("mqis.audit")

#: Characters at most of a reason and of a name from a peer, in a log line or a table.
_MOST_SHOWN = 300
_MOST_NAME = 80


class LiveAccounts:
    """Accounts whose file may be replaced; ``runtime.authentication.account.Accounts``.

    With a file that cannot be used, every logon fails and the log says why; the server stays up
    while the file is repaired.
    """

    def __init__(self, path: Path) -> None:
        self._file = AccountsFile(path)

    def use(self, path: Path) -> None:
        """Switches to another file; raises ``AccountsError`` if it is damaged or not private."""
        file = AccountsFile(path)
        if file.path.exists():
            log.info("accounts", extra=details(file=file.path, number=len(file.accounts())))
        else:
            text = "no accounts yet, all callers are anonymous; 'mqis account add' makes the file"
            log.warning(text, extra=details(file=file.path))
        self._file = file

    def find(self, domain: str, name: str) -> Account | None:
        try:
            return self._file.find(domain, name)
        except AccountsError as error:
            log.error("nobody can log on: %s", error)
            return None


class AuditedAuthenticator:
    """The server's authenticator: counts failed logons, and makes repeated failures wait.

    Programs on this computer wait by account only: the console logs many users on from here.
    """

    def __init__(
        self,
        authenticator: PyspnegoAuthenticator,
        limits: LogonLimits | None = None,
        *,
        min_level: int = AuthLevel.INTEGRITY,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``min_level``: logons below it are logged, and their users are anonymous."""
        self._authenticator = authenticator
        self._min_level = min_level
        self._clock = clock
        self._failed = FailedLogons(limits)
        #: Since the start: logons that were begun, those that failed, and those of the failed
        #: ones that were refused unchecked because of a wait.
        self.attempts = 0
        self.failures = 0
        self.unjudged = 0

    def acceptor(
        self, auth_type: int, level: int, addresses: Addresses = NOWHERE
    ) -> SecurityContext:
        attempt = _Attempt(self, addresses.peer)
        context = self._authenticator.acceptor(
            auth_type, level, addresses, claim=attempt.check_account
        )
        self.attempts += 1
        return _AuditedContext(context, attempt, level)

    # --- called by attempts -----------------------------------------------------------------------

    def wait_s(self, peer: str, account: str = "") -> float:
        """Seconds that a peer, or an account there, has to wait before a password is checked."""
        now, address = self._clock(), computer_of(peer)
        if account:
            return self._failed.account_wait_s(address, account, now)
        return self._failed.address_wait_s(address, now)

    def failed(self, peer: str, account: str, shown: str, reason: str) -> None:
        """Counts and logs a logon that was checked and failed."""
        self.failures += 1
        now, address = self._clock(), computer_of(peer)
        counted = self._failed.failed(address, account, now, exempt=is_loopback(peer))
        fields: dict[str, object] = {"peer": peer}
        if counted.wait_s:
            fields["wait_s"] = round(counted.wait_s, 1)
        audit.warning("refused: %s cannot log on: %s", shown, reason, extra=details(**fields))
        if counted.alarm:
            text = "many failed logons as %s, lately from this address"
            audit.error(text, shown, extra=details(peer=peer, failures=counted.alarm))

    def not_judged(self, peer: str, shown: str) -> None:
        """Counts a logon during a wait, without an audit line: there would be one per attempt."""
        self.failures += 1
        self.unjudged += 1
        log.debug("%s has to wait before it may log on", shown, extra=details(peer=peer))

    def succeeded(self, peer: str, account: str, identity: Identity | None, level: int) -> None:
        if account:
            self._failed.succeeded(computer_of(peer), account)
        if has_name(identity) and level < self._min_level:
            text = "%s logged on below security.min_level and counts as anonymous"
            audit.warning(text, identity, extra=details(peer=peer, level=level))


class _MustWait(AuthenticationError):
    """A logon was attempted before the end of its wait."""


class _Attempt:
    """One logon: the account that it claims, and its wait."""

    def __init__(self, authenticator: AuditedAuthenticator, peer: str) -> None:
        self._authenticator = authenticator
        self.peer = peer
        #: The key under which failures are counted; empty until a name was given.
        self.account = ""
        self.shown = "somebody"

    def check_address(self) -> None:
        self._check(self._authenticator.wait_s(self.peer))

    def check_account(self, name: str, account: Account | None) -> None:
        """Sets the name under which failures count: an account's own, or the unknown name."""
        self.shown = _cut(name if account is None else str(account), _MOST_NAME)
        self.account = self.shown.upper()
        self._check(self._authenticator.wait_s(self.peer, self.account))

    def _check(self, wait_s: float) -> None:
        if wait_s > 0:
            raise _MustWait(f"too many failed logons, wait {wait_s:.0f} s")

    def failed(self, error: AuthenticationError) -> None:
        if isinstance(error, _MustWait):
            self._authenticator.not_judged(self.peer, self.shown)
        else:
            reason = _cut(str(error), _MOST_SHOWN)
            self._authenticator.failed(self.peer, self.account, self.shown, reason)

    def succeeded(self, identity: Identity | None, level: int) -> None:
        self._authenticator.succeeded(self.peer, self.account, identity, level)


class _AuditedContext:
    """A security context whose errors during the logon count as a failed logon."""

    def __init__(self, context: SecurityContext, attempt: _Attempt, level: int) -> None:
        self._context = context
        self._attempt = attempt
        self._level = level
        self._refused = False
        self.signature_size = context.signature_size
        self.protect = context.protect

    @property
    def complete(self) -> bool:
        return self._context.complete

    @property
    def identity(self) -> Identity | None:
        return self._context.identity

    def step(self, token: bytes | None) -> bytes | None:
        try:
            self._attempt.check_address()
            answer = self._context.step(token)
        except AuthenticationError as error:
            self._attempt.failed(error)
            raise
        if self._context.complete:
            self._attempt.succeeded(self._context.identity, self._level)
        return answer

    def unprotect(  # noqa: PLR0917
        self,
        level: int,
        header: bytes,
        body: bytes,
        trailer: bytes,
        signature: bytes,
        sign_header: bool,
    ) -> bytes:
        """Logs a wrong signature: an attacker who relays a logon has no key to sign with."""
        try:
            return self._context.unprotect(level, header, body, trailer, signature, sign_header)
        except AuthenticationError as error:
            if not self._refused:
                self._refused = True
                shown, peer = self._attempt.shown, self._attempt.peer
                text = "refused: a message that was not signed by %s: %s"
                audit.warning(text, shown, error, extra=details(peer=peer))
            raise


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
