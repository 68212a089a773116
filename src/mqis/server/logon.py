"""Logons to a server: replaceable accounts, the counting of failed logons, the end of others.

A failed logon is counted (``protocol.security.logons`` decides how long to wait) and leaves an
audit line with the peer's address. Connections and S_DSValidateServer share one authenticator and
one count.

A logon that succeeded is judged again when the accounts have changed: its groups are then those of
the accounts file, and it ends if the account is gone or has another password or SID. It also
ends after ``security.logon_lifetime_s``, and with the Kerberos ticket that it was made with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from hmac import compare_digest
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from mqis.config.errors import ConfigError
from mqis.config.logs import details
from mqis.protocol.authentication import (
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthLevel,
    CallerTicket,
    Identity,
    LogonEnd,
    SecurityContext,
    has_name,
)
from mqis.protocol.security.logons import FailedLogons, LogonLimits
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account
from mqis.runtime.peers import computer_of, is_loopback
from mqis.server.accounts import AccountsFile
from mqis.texts import duration, shortened

if TYPE_CHECKING:  # loaded with the first logon
    from mqis.runtime.authentication.spnego_context import ProviderContext

log = logging.getLogger(__name__)
audit = logging.getLogger("mqis.audit")

#: Characters at most of a reason and of a name from a peer, in a log line or a table.
_MOST_SHOWN = 300
_MOST_NAME = 80
#: The seconds that a logon is valid, unless the configuration says otherwise.
LIFETIME_S = 12 * 3600.0


class LiveAccounts:
    """Accounts whose file may be replaced; ``runtime.authentication.account.Accounts``.

    With a file that cannot be used, every logon fails and the log says why; the server stays up
    while the file is repaired. Where callers log on by tickets, there need not be a file.
    """

    def __init__(self, path: Path) -> None:
        self._file = AccountsFile(path)
        #: The editions of the files before this one.
        self._before = 0
        self._unusable = False
        self._tickets = False

    def use(self, path: Path, *, tickets: bool = False) -> None:
        """Switches to another file; raises ``ConfigError`` if it is damaged or not private.

        ``tickets``: the server has a keytab, so callers can log on by Kerberos.
        """
        file = AccountsFile(path)
        if file.path.exists():
            log.info("accounts", extra=details(file=file.path, number=len(file.accounts())))
        elif tickets:
            text = "no accounts: callers log on by Kerberos alone"
            log.info(text, extra=details(file=file.path))
        else:
            text = "no accounts yet, all callers are anonymous; 'mqis account add' makes the file"
            log.warning(text, extra=details(file=file.path))
        self._before = self.edition + 1
        self._file = file
        self._tickets = tickets

    @property
    def edition(self) -> int:
        return self._before + self._file.edition

    def look(self) -> None:
        """Reads the file if it has changed.

        One that cannot be used ends no logon: somebody may be editing it. ``use`` is strict.
        """
        if self._needs_none:
            return
        try:
            self._file.look()
        except ConfigError as error:
            if not self._unusable:
                log.error("the accounts are those that were read last: %s", error)
            self._unusable = True
        else:
            self._unusable = False

    def known(self, domain: str, name: str) -> Account | None:
        return self._file.known(domain, name)

    @property
    def _needs_none(self) -> bool:
        """Whether there is no file, and need not be one. One that was read has to stay."""
        return self._tickets and not self._file.edition and not self._file.path.exists()

    def find(self, domain: str, name: str) -> Account | None:
        if self._needs_none:
            return None
        try:
            return self._file.find(domain, name)
        except ConfigError as error:
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
        lifetime_s: float = LIFETIME_S,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``min_level``: logons below it are logged, and their users are anonymous."""
        self._authenticator = authenticator
        self._min_level = min_level
        #: The seconds after which a logon ends; a change holds for all logons.
        self.lifetime_s = lifetime_s
        self.clock = clock
        self.accounts = authenticator.accounts
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
        now, address = self.clock(), computer_of(peer)
        if account:
            return self._failed.account_wait_s(address, account, now)
        return self._failed.address_wait_s(address, now)

    def failed(self, peer: str, account: str, shown: str, reason: str) -> None:
        """Counts and logs a logon that was checked and failed."""
        self.failures += 1
        now, address = self.clock(), computer_of(peer)
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
        self.authenticator = authenticator
        self.peer = peer
        #: The account whose password is checked; None: none is, as with a ticket.
        self.proved: Account | None = None
        #: The key under which failures are counted; empty until a name was given.
        self.account = ""
        self.shown = "somebody"

    def check_address(self) -> None:
        self._check(self.authenticator.wait_s(self.peer))

    def check_account(self, name: str, account: Account | None) -> None:
        """Sets the name under which failures count: an account's own, or the unknown name."""
        self.proved = account
        self.shown = shortened(name if account is None else str(account), _MOST_NAME)
        self.account = self.shown.upper()
        self._check(self.authenticator.wait_s(self.peer, self.account))

    def _check(self, wait_s: float) -> None:
        if wait_s > 0:
            raise _MustWait(f"too many failed logons, wait {duration(wait_s)}")

    def failed(self, error: AuthenticationError) -> None:
        if isinstance(error, _MustWait):
            self.authenticator.not_judged(self.peer, self.shown)
        else:
            reason = shortened(str(error), _MOST_SHOWN)
            self.authenticator.failed(self.peer, self.account, self.shown, reason)

    def succeeded(self, identity: Identity | None, level: int) -> None:
        self.authenticator.succeeded(self.peer, self.account, identity, level)


class _AuditedContext:
    """A security context whose failed logon counts, and whose logon may end.

    ``identity`` and ``ended`` are those of now: they are judged again after each change of the
    accounts, and ``ended`` stays as it is once it has a reason.
    """

    def __init__(self, context: ProviderContext, attempt: _Attempt, level: int) -> None:
        self._context = context
        self._attempt = attempt
        self._level = level
        self._refused = False
        self.signature_size = context.signature_size
        self.protect = context.protect
        self._owner = attempt.authenticator
        #: The caller; None until the context is complete.
        self._identity: Identity | None = None
        self._end: LogonEnd | None = None
        #: The edition of the accounts that the logon was judged by last; none before its first use.
        self._edition = -1
        #: The time of the logon, and the end of its ticket.
        self._began = self._ticket_until = inf

    @property
    def complete(self) -> bool:
        return self._context.complete

    @property
    def identity(self) -> Identity | None:
        valid = self._context.complete and self.ended is None
        return self._identity if valid else None

    @property
    def ended(self) -> LogonEnd | None:
        if self._end is not None or not has_name(self._identity):
            return self._end
        if self._edition != self._owner.accounts.edition:
            self._judge_again(self._identity)
        now = self._owner.clock()
        if self._end is None and now >= min(
            self._began + self._owner.lifetime_s, self._ticket_until
        ):
            self._ends(LogonEnd.EXPIRED, "it is too old")
        return self._end

    @property
    def ticket(self) -> CallerTicket | None:
        return self._context.ticket if has_name(self.identity) else None

    def _judge_again(self, before: Identity) -> None:
        """Takes the groups that the account has now, or ends the logon."""
        self._edition = self._owner.accounts.edition
        proved = self._attempt.proved
        if proved is None:  # by a ticket, whose principal is looked up again
            now = self._context.identity
            if now is None or (before.sid is not None and now.sid != before.sid):
                self._ends(LogonEnd.REVOKED, "its account was removed")
            else:
                self._identity = now
            return
        account = self._owner.accounts.known(proved.domain, proved.name)
        if account is None or account.sid != proved.sid:
            self._ends(LogonEnd.REVOKED, "its account was removed")
        elif not compare_digest(account.nt_hash, proved.nt_hash):
            self._ends(LogonEnd.REVOKED, "its account has another password now")
        else:
            self._identity = account.identity

    def _ends(self, end: LogonEnd, reason: str) -> None:
        self._end = end
        text = "the logon of %s has ended: %s"
        audit.warning(text, self._identity, reason, extra=details(peer=self._attempt.peer))

    def step(self, token: bytes | None) -> bytes | None:
        try:
            self._attempt.check_address()
            answer = self._context.step(token)
        except AuthenticationError as error:
            self._attempt.failed(error)
            raise
        if self._context.complete:
            self._begin()
        return answer

    def _begin(self) -> None:
        self._identity = self._context.identity
        self._began = self._owner.clock()
        self._ticket_until = self._began + self._context.lifetime_s
        self._attempt.succeeded(self._identity, self._level)

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
