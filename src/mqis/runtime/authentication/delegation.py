"""Constrained delegation (MS-SFU): a server acts as its caller, and needs no right of the caller's.

A caller's Kerberos ticket for this server is evidence that the caller is here. Shown with the
tickets of the server's own account, it makes the KDC give a ticket of the caller for a service that
``msDS-AllowedToDelegateTo`` of that account names, such as ``ldap/dc1.corp.example`` (S4U2Proxy).
The KDC refuses if the caller's ticket is not forwardable, which it never is for an account that "is
sensitive and cannot be delegated".

GSSAPI gives an acceptor such credentials by itself, but not in DCE style (MS-RPCE 2.2.1.1.7), which
all callers here use. So the ticket is taken out of the caller's token and put into a cache beside
the server's own, where the library finds it. Whose ticket it is, the KDC says: an answer for
another client than the one that logged on is refused by the library.
"""

from __future__ import annotations

import logging
import time
import weakref
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

from spnego._gss import _kinit

from mqis.protocol.authentication import AuthenticationError, CallerTicket
from mqis.runtime.authentication.kerberos import check_available, realms_of, reason_of
from mqis.wire.security.tickets import KerberosName, ShownTicket, ticket_of

log = logging.getLogger(__name__)

#: Names the server's account in a cache with the tickets of a caller, for the library.
_IMPERSONATOR = b"proxy_impersonator"
_KRBTGT = b"krbtgt"
_NUMBERS = count(1)
#: Seconds for which a ticket is used that only tries delegation out.
_TRIAL_S = 60.0


class ServiceTickets:
    """The tickets of the server's account, and what callers' tickets become beside them."""

    def __init__(self, user: str, *, keytab: str | None = None, ccache: str | None = None) -> None:
        """With a keytab this logs on as ``user``; else another program keeps the cache fresh."""
        self._user = user
        self._keytab = keytab
        #: The library keeps tickets there, and fetches new ones when half of their time is over.
        self._ccache = ccache or f"MEMORY:mqis-{id(self):x}"
        self._outage = ""

    # --- in threads: these talk to the KDC --------------------------------------------------------

    def renew(self) -> None:
        """Logs on, unless there are tickets that are good for a while; a keytab is read anew."""
        try:
            self._own()
        except AuthenticationError:
            raise
        except Exception as error:  # GSSAPI's, which may not even be installed
            raise AuthenticationError(
                f"no tickets for {self._user or self._ccache}: {reason_of(error)}"
            ) from error

    def keep(self) -> None:
        """Renews, and logs an outage once and its end."""
        try:
            self.renew()
        except AuthenticationError as error:
            if not self._outage:
                log.error("the server cannot act as its callers: %s", error)
            self._outage = str(error)
        else:
            if self._outage:
                log.info("the server can act as its callers again")
            self._outage = ""

    def _own(self) -> Any:
        """The credentials of the server's account."""
        check_available()
        gssapi = import_module("gssapi")  # an extra
        store = {"ccache": self._ccache}
        name = None
        if self._keytab is not None:
            realms_of(self._keytab)  # one that others may read is refused
            store["client_keytab"] = self._keytab
            name = gssapi.Name(self._user, gssapi.NameType.user)
        mechs = [gssapi.MechType.kerberos]
        return gssapi.Credentials(name=name, usage="initiate", store=store, mechs=mechs)

    def of_itself(self) -> CallerTicket:
        """What the account acts as itself with: it shows, without a caller, whether that works."""
        try:
            token = self._token_for_itself()
            return self.joined(self._user, ticket_of(token), _TRIAL_S)
        except AuthenticationError:
            raise
        except Exception as error:  # GSSAPI's
            raise AuthenticationError(
                f"no ticket of {self._user or self._ccache} for itself: {reason_of(error)}"
            ) from error

    def _token_for_itself(self) -> bytes:
        """The first token of a logon of the account to itself."""
        credentials = self._own()
        gssapi = import_module("gssapi")
        self._user = self._user or str(credentials.name)
        if self._keytab is not None:  # as callers have them, whatever krb5.conf says
            made = _kinit(
                self._user.encode(), self._keytab.encode(), forwardable=True, is_keytab=True
            )
            credentials = gssapi.Credentials(base=made, usage="initiate")
        name = gssapi.Name(self._user, gssapi.NameType.user)
        mech = gssapi.MechType.kerberos
        context = gssapi.SecurityContext(name=name, creds=credentials, usage="initiate", mech=mech)
        return bytes(context.step() or b"")

    # --- for acceptors ----------------------------------------------------------------------------

    def joined(self, principal: str, ticket: bytes, lifetime_s: float) -> CallerTicket:
        """What to act as a caller with, who has just logged on with this ticket."""
        cache = f"MEMORY:mqis-caller-{next(_NUMBERS)}"
        ends = int(time.time() + lifetime_s)
        made = CallerTicket(principal, partial(self._credentials, cache, principal, ticket, ends))
        weakref.finalize(made, _forget, cache).atexit = False
        return made

    def _credentials(self, name: str, principal: str, ticket: bytes, ends: int) -> Any:
        """A cache with the caller's ticket and the server's of now, as credentials."""
        self.renew()
        krb5, gssapi = import_module("krb5"), import_module("gssapi")
        context = krb5.init_context()
        own = krb5.cc_resolve(context, self._ccache.encode())
        caller = krb5.parse_name_flags(context, principal.encode())
        cache = krb5.cc_resolve(context, name.encode())
        krb5.cc_initialize(context, cache, caller)
        krb5.cc_set_config(context, cache, None, _IMPERSONATOR, str(own.principal).encode())
        for credential in own:
            if credential.server.components[0] == _KRBTGT:
                krb5.cc_store_cred(context, cache, credential)
        shown = ShownTicket(_parts(caller), _parts(own.principal), ticket, int(time.time()), ends)
        krb5.cc_store_cred(context, cache, krb5.unmarshal_credentials(context, shown.encode()))
        mechs = [gssapi.MechType.kerberos]
        return gssapi.Credentials(usage="initiate", store={"ccache": name}, mechs=mechs)


def _parts(principal: Any) -> KerberosName:
    return KerberosName(principal.realm, tuple(principal.components))


def _forget(name: str) -> None:
    """Destroys the cache of a logon that nobody has any more."""
    krb5 = import_module("krb5")
    context = krb5.init_context()
    krb5.cc_destroy(context, krb5.cc_resolve(context, name.encode()))
