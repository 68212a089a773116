"""Logging on to a server: accounts that may be exchanged, and an audit line for who is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

from mqis.protocol.authentication import (
    AuthenticationError,
    Authenticator,
    Identity,
    SecurityContext,
)
from mqis.runtime.authentication.account import Account
from mqis.services.accounts import AccountsError, AccountsFile
from mqis.services.logs import details

log = logging.getLogger(__name__)
audit = logging.getLogger("mqis.audit")

#: The name that the leg under way asked for, which the error of a provider does not tell.
_asked: ContextVar[str] = ContextVar("_asked", default="")


class LiveAccounts:
    """``runtime.authentication.account.Accounts`` whose file may be exchanged.

    A file that cannot be used lets nobody in, and says so in the log: a server stays up while
    somebody repairs it.
    """

    def __init__(self, path: Path) -> None:
        self._file = AccountsFile(path)

    def use(self, path: Path) -> None:
        """Look into another file from now on; ``AccountsError`` if it is damaged or not private."""
        file = AccountsFile(path)
        if file.path.exists():
            log.info("accounts", extra=details(file=file.path, number=len(file.accounts())))
        else:
            text = "no accounts yet, callers are anonymous; 'mqis account add' makes the file"
            log.warning(text, extra=details(file=file.path))
        self._file = file

    def find(self, domain: str, name: str) -> Account | None:
        if not _asked.get():  # later ones are guesses at what the caller meant
            _asked.set(f"{domain}\\{name}" if domain else name)
        try:
            return self._file.find(domain, name)
        except AccountsError as error:
            log.error("nobody can log on: %s", error)
            return None


class AuditedAuthenticator:
    """Any ``Authenticator``, with a line in the audit trail for every logon that fails."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        #: Contexts that were begun, and logons that failed, since the start.
        self.attempts = 0
        self.failures = 0

    def acceptor(self, auth_type: int, level: int) -> SecurityContext:
        context = self._authenticator.acceptor(auth_type, level)
        self.attempts += 1
        return _AuditedContext(context, self._failed)

    def _failed(self) -> None:
        self.failures += 1


class _AuditedContext:
    """One context; whatever it raises between its first leg and its last is told."""

    def __init__(self, context: SecurityContext, on_failure: Callable[[], None]) -> None:
        self._context = context
        self._on_failure = on_failure
        self.signature_size = context.signature_size
        self.protect = context.protect
        self.unprotect = context.unprotect

    @property
    def complete(self) -> bool:
        return self._context.complete

    @property
    def identity(self) -> Identity | None:
        return self._context.identity

    def step(self, token: bytes | None) -> bytes | None:
        reset = _asked.set("")
        try:
            return self._context.step(token)
        except AuthenticationError as error:
            self._on_failure()
            who = _asked.get() or "somebody"
            audit.warning("refused: %s cannot log on: %s", who, error)
            raise
        finally:
            _asked.reset(reset)
