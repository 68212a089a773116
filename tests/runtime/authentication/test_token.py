"""From an identity to the token that access checks ask."""

from __future__ import annotations

from mqis.protocol.authentication import ANONYMOUS, Identity, token_for
from mqis.wire.security import sid as well_known
from mqis.wire.security.sid import Sid

ALICE = Sid.parse("S-1-5-21-1-2-3-1000")
EVERYBODY = {well_known.EVERYONE, well_known.AUTHENTICATED_USERS, well_known.NETWORK}


def test_an_account_and_its_groups() -> None:
    token = token_for(Identity("LAB", "alice", ALICE, frozenset({well_known.ADMINISTRATORS})))
    assert token.user == ALICE
    assert token.groups == {well_known.ADMINISTRATORS, *EVERYBODY}
    assert not token.security_privilege
    assert not token.take_ownership_privilege


def test_somebody_proven_without_an_account() -> None:
    token = token_for(Identity("REALM", "carol"))
    assert token.user is None
    assert token.groups == EVERYBODY


def test_nobody() -> None:
    for identity in (None, ANONYMOUS):
        token = token_for(identity)
        assert token.user == well_known.ANONYMOUS
        assert token.groups == {well_known.NETWORK}
        widened = token_for(identity, anonymous_in_everyone=True)
        assert widened.groups == {well_known.NETWORK, well_known.EVERYONE}


def test_how_identities_are_shown() -> None:
    assert str(Identity("LAB", "alice")) == "LAB\\alice"
    assert str(Identity("", "bob")) == "bob"
    assert str(ANONYMOUS) == "anonymous"
