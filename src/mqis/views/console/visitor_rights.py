"""The rights of a visitor of the console: they may read what RPC would show their account.

An account is valid at a server if the server's accounts file has that name with that password, so
one login is valid for all such servers. A visitor who has not logged in is a guest: anonymous, as
for RPC, unless the command line says otherwise (``--as``). That gives no additional rights: the
user who starts the console can read the files anyway.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from pathlib import Path

from mqis.config import file as config
from mqis.config.sections import SecuritySection
from mqis.protocol.authentication import Identity, token_for
from mqis.protocol.directory.guard import Guard
from mqis.protocol.security.access import Token
from mqis.runtime.authentication.account import nt_hash, resolve
from mqis.server.accounts import AccountsFile
from mqis.views.console.server_places import ServerPlace
from mqis.views.presentation.permissions import NO_NAMES, AccountNames, who
from mqis.wire.errors import MqisError
from mqis.wire.security.sid import ADMINISTRATORS, Sid

__all__ = [
    "EVERYTHING",
    "AccountNames",
    "Guest",
    "MqisError",
    "Proof",
    "RightsBook",
    "VisitorRights",
]

_ANONYMOUS, _ADMINISTRATOR = "anonymous", "administrator"


@dataclass(frozen=True, slots=True)
class VisitorRights:
    """A visitor's token at one server, and its administrators. Equal rights read the same."""

    token: Token
    administrators: frozenset[Sid]

    def guard(self) -> Guard:
        return Guard(self.token, self.administrators)

    @property
    def everything(self) -> bool:
        return self.guard().is_administrator


EVERYTHING = VisitorRights(Token(None, frozenset({ADMINISTRATORS})), frozenset({ADMINISTRATORS}))


@dataclass(frozen=True, slots=True)
class Guest:
    """A visitor who has not logged in. Without a SID, anonymous."""

    sid: Sid | None = None
    everything: bool = False

    @classmethod
    def parse(cls, text: str) -> Guest:
        """Parses ``anonymous``, ``administrator`` or a SID."""
        if text.lower() == _ANONYMOUS:
            return cls()
        if text.lower() == _ADMINISTRATOR:
            return cls(everything=True)
        try:
            return cls(Sid.parse(text))
        except ValueError:
            known = f"{_ANONYMOUS}, {_ADMINISTRATOR} or a SID such as S-1-5-11"
            raise MqisError(f"--as {text}: this is no user; write {known}") from None

    def __str__(self) -> str:
        user = _ANONYMOUS if self.sid is None else str(self.sid)
        return _ADMINISTRATOR if self.everything else user

    @property
    def text(self) -> str:
        """The guest for people: with the name of a SID that has one."""
        return str(self) if self.sid is None or self.everything else who(self.sid)

    @property
    def is_anonymous(self) -> bool:
        return self.sid is None and not self.everything

    def rights(self, security: SecuritySection) -> VisitorRights:
        if self.everything:
            return EVERYTHING
        if self.sid is not None:
            token = Token.authenticated(self.sid)
        else:
            token = token_for(None, anonymous_in_everyone=security.anonymous)
        return VisitorRights(token, frozenset(security.administrators))


@dataclass(frozen=True, slots=True)
class Proof:
    """An account and its password's hash, with which a server has accepted a logon."""

    domain: str
    name: str
    #: The server, as ``ServerPlace.name``.
    at: str
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, domain: str, name: str, at: str, password: str) -> Proof:
        return cls(domain, name, at, nt_hash(password))


class RightsBook:
    """Determines a visitor's rights at each server; changed files take effect at once."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._files: dict[Path, AccountsFile] = {}

    def rights(self, place: ServerPlace, proof: Proof | None) -> VisitorRights | None:
        """The visitor's rights; None if only the server itself knows them.

        That is so for a server whose configuration is not known here, unless ``--as`` gives the
        guests' rights, and for an account that only the server can authenticate (Kerberos).
        """
        if place.config is None:
            return self._without_config(place, proof)
        found = config.load(place.config)
        security = found.security
        if proof is not None:
            names = security.domain, found.server.name or place.name
            user = self._identity(Path(security.accounts), names, proof)
            if user is not None:
                return VisitorRights(token_for(user), frozenset(security.administrators))
            if proof.at == place.name:
                return None
        return self._guest.rights(security)

    def account_names(self, place: ServerPlace, proof: Proof | None) -> AccountNames:
        """The names of a server's accounts; none for a visitor who has no account there.

        So nobody learns from the console whom to guess passwords of.
        """
        rights = self.rights(place, proof)
        if place.config is None or rights is None:
            return NO_NAMES
        try:
            accounts = self._file(Path(config.load(place.config).security.accounts)).accounts()
        except MqisError:  # there is no such file, or it is damaged: a page shows the SIDs
            return NO_NAMES
        names = {account.sid: str(account) for account in accounts}
        return names if rights.everything or rights.token.user in names else NO_NAMES

    def _without_config(self, place: ServerPlace, proof: Proof | None) -> VisitorRights | None:
        logged_in_here = proof is not None and proof.at == place.name
        if logged_in_here or (place.rpc is not None and self._guest.is_anonymous):
            return None
        return self._guest.rights(SecuritySection())

    def _identity(self, path: Path, own_names: tuple[str, str], proof: Proof) -> Identity | None:
        accounts = self._file(path)
        if not accounts.path.exists():
            return None
        account = resolve(accounts, own_names, proof.domain, proof.name)
        if account is None or not hmac.compare_digest(account.nt_hash, proof.secret):
            return None
        return account.identity

    def _file(self, path: Path) -> AccountsFile:
        return self._files.setdefault(path, AccountsFile(path))
