"""A logon as a client with the key of a keytab, and with another key after its renewal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqis.protocol.authentication import AuthenticationError
from mqis.runtime.authentication.kerberos import KerberosAcceptor, KerberosInitiator
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.runtime.ldap.spnego import LdapProtection, SpnegoExchange, SpnegoMechanism, SpnegoUser
from tests.runtime.authentication.pairs import ACCOUNTS
from tests.runtime.authentication.test_kerberos import HOST, REALM, Realm, realm

pytestmark = pytest.mark.interop
__all__ = ["realm"]

ACCOUNT = f"service@{REALM}"


def logon(realm: Realm, keytab: Path) -> str | None:
    """Logs on at the server with the key of a file; returns who the server says it is."""
    client = KerberosInitiator(
        ACCOUNT, None, None, host=HOST, service="host", sealing=True, keytab=str(keytab)
    )
    server = KerberosAcceptor(ACCOUNTS, ("SRV1", REALM), str(realm.keytab))
    token = client.step()
    while token and not (client.complete and server.complete):
        answer = server.step(token)
        token = client.step(answer) if answer else None
    return server.client_principal if server.complete else None


def test_a_renewed_key_is_read_at_the_next_logon(realm: Realm, tmp_path: Path) -> None:
    keytab, old = tmp_path / "service.keytab", tmp_path / "old.keytab"
    realm.administer("addprinc -randkey service")
    realm.administer(f"ktadd -k {keytab} service")
    keytab.chmod(0o600)
    assert logon(realm, keytab) == ACCOUNT
    shutil.copy(keytab, old)
    keytab.unlink()
    realm.administer(f"ktadd -k {keytab} service")  # gives the account a new key
    keytab.chmod(0o600)
    assert logon(realm, keytab) == ACCOUNT
    with pytest.raises(Exception, match=r"(?i)preauth|decrypt|password|key"):
        logon(realm, old)
    keytab.chmod(0o644)
    with pytest.raises(AuthenticationError, match="other users may read"):
        logon(realm, keytab)


def test_a_logon_to_a_directory_without_a_password(realm: Realm, tmp_path: Path) -> None:
    keytab = tmp_path / "reader.keytab"
    realm.administer("addprinc -randkey reader")
    realm.administer(f"addprinc -randkey ldap/{HOST}")
    realm.administer(f"ktadd -k {keytab} reader")
    keytab.chmod(0o600)
    user = SpnegoUser(f"reader@{REALM.lower()}", keytab=str(keytab))
    exchange = SpnegoExchange(
        user,
        HOST,
        protection=LdapProtection.SEAL,
        mechanism=SpnegoMechanism(BindMethod.KERBEROS.value),
    )
    assert exchange.step(None)  # a ticket for ldap/HOST was had
    empty = tmp_path / "none.keytab"
    with pytest.raises(AuthenticationError, match="cannot be read"):
        SpnegoExchange(
            SpnegoUser("reader", keytab=str(empty)),
            HOST,
            protection=LdapProtection.SEAL,
            mechanism=SpnegoMechanism.KERBEROS,
        )
