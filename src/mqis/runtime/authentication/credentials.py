"""What a user logs on with. It loads no provider: these take longer than many commands."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.runtime.authentication.account import nt_hash


@dataclass(frozen=True, slots=True)
class LogonCredentials:
    """A name with a password, an NT hash (NTLM only), or a Kerberos ticket cache."""

    name: str
    domain: str = ""
    password: str | None = field(default=None, repr=False)
    nt_hash: bytes | None = field(default=None, repr=False)
    ccache: str | None = None

    @property
    def ntlm_secret(self) -> bytes | None:
        """The NT hash, given or made from the password; None if there is neither."""
        if self.nt_hash is not None:
            return self.nt_hash
        return nt_hash(self.password) if self.password is not None else None

    @property
    def principal(self) -> str:
        """The name as Kerberos writes it."""
        return f"{self.name}@{self.domain.upper()}" if self.domain else self.name
