"""Certificates of users: whose digest they carry, who may register them, and how many."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.guard import Allowance, Guard
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.user_certificates import with_digests
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.access import Token
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import AUTHENTICATED_USERS, Sid
from tests.protocol.directory.world import (
    ALICE_SID,
    BARE_CERTIFICATE,
    BOB_SID,
    ENTERPRISE,
    OTHER,
    SECOND_CERTIFICATE,
    USER,
    World,
    blob,
    certificates,
    digest,
    guids,
    refusal,
    ui4,
)

ALICE, BOB = Sid.from_bytes(ALICE_SID), Sid.from_bytes(BOB_SID)
SECOND = {702: blob(certificates(SECOND_CERTIFICATE)), 705: guids(digest(SECOND_CERTIFICATE))}


def changed(world: World, properties: Properties) -> OwnChange:
    old = world.one(USER)
    new = old.with_properties(properties, old.seq)
    return OwnChange(ChangeKind.UPDATE, new, old, tuple(properties))


def judged(world: World, guard: Guard, change: OwnChange) -> int:
    with world.store.read() as view:
        try:
            guard.check_change(change, view)
        except DirectoryError as error:
            return error.hresult
    return HResult.MQ_OK


class TestDigests:
    def test_a_digest_that_is_left_out_is_computed(self) -> None:
        given = {702: blob(SECOND_CERTIFICATE)}
        assert with_digests(given, {})[705] == guids(digest(SECOND_CERTIFICATE))

    def test_a_digest_alone_is_one_of_what_is_stored(self) -> None:
        stored = World().one(USER).properties
        same = {705: guids(digest(BARE_CERTIFICATE))}
        assert with_digests(same, stored) == same
        other = {705: guids(OTHER)}
        refused = refusal(lambda: with_digests(other, stored))
        assert refused == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE

    def test_no_certificate_has_no_digest(self) -> None:
        assert with_digests({702: blob(b"")}, {})[705] == guids()
        assert refusal(lambda: with_digests({702: blob(b""), 705: guids(OTHER)}, {}))

    @pytest.mark.parametrize(
        "given",
        [
            {705: guids(OTHER)},
            {702: ui4(7)},
            {702: blob(b"neither a list nor a certificate")},
            {702: blob(BARE_CERTIFICATE), 705: ui4(7)},
        ],
        ids=["no certificate", "no bytes", "garbage", "no digests"],
    )
    def test_what_cannot_be_read_is_left_to_other_checks(self, given: Properties) -> None:
        assert with_digests(given, {}) == given


class TestUsers:
    def test_the_user_himself(self) -> None:
        world = World()
        assert judged(world, Guard(Token.authenticated(ALICE)), changed(world, SECOND)) == 0

    def test_groups_do_not_count(self) -> None:
        """A user object may carry the SID of a group that everybody is in."""
        world = World()
        everybodys = changed(world, {701: blob(AUTHENTICATED_USERS.to_bytes())})
        for who in (ALICE, BOB):
            denied = judged(world, Guard(Token.authenticated(who)), everybodys)
            assert denied == HResult.MQ_ERROR_ACCESS_DENIED

    def test_a_caller_whom_kerberos_knows_and_we_do_not(self) -> None:
        """It has no SID, and so has a user object that names none or none that can be read."""
        world = World()
        for sid in (blob(b""), blob(b"\xff"), ui4(3)):
            change = changed(world, {701: sid})
            nobodys = OwnChange(ChangeKind.CREATE, change.obj, None, (701,))
            assert judged(world, Guard(Token(None)), nobodys) == HResult.MQ_ERROR_ACCESS_DENIED

    def test_who_may_write_the_enterprise(self) -> None:
        world = World()
        writes = parse_sddl(f"O:BAD:(A;;0x10;;;{BOB})").to_bytes()
        guard = Guard(Token.authenticated(BOB))
        assert judged(world, guard, changed(world, SECOND)) == HResult.MQ_ERROR_ACCESS_DENIED
        world.update_event(world.one(ENTERPRISE), {1601: blob(writes)})
        assert judged(world, guard, changed(world, SECOND)) == HResult.MQ_OK

    def test_without_an_enterprise_nobody_may(self) -> None:
        world, empty = World(), World(empty=True)
        guard = Guard(Token.authenticated(BOB))
        assert judged(empty, guard, changed(world, SECOND)) == HResult.MQ_ERROR_ACCESS_DENIED

    @pytest.mark.parametrize(
        ("allowance", "result"),
        [
            (Allowance(max_certificates=2), HResult.MQ_OK),
            (Allowance(max_certificates=1), HResult.MQ_ERROR_INSUFFICIENT_RESOURCES),
            (Allowance(max_certificate_bytes=11), HResult.MQ_ERROR_INSUFFICIENT_RESOURCES),
        ],
    )
    def test_more_certificates(self, allowance: Allowance, result: HResult) -> None:
        world = World()
        both = {702: blob(certificates(BARE_CERTIFICATE, SECOND_CERTIFICATE))}
        guard = Guard(Token.authenticated(ALICE), allowance=allowance)
        assert judged(world, guard, changed(world, both)) == result

    def test_a_list_that_is_too_long_may_become_shorter(self) -> None:
        world = World()
        none = Guard(Token.authenticated(ALICE), allowance=Allowance(max_certificates=0))
        assert judged(world, none, changed(world, {702: blob(certificates())})) == HResult.MQ_OK


def test_callers_without_a_sid_share_one_account() -> None:
    """Kerberos may prove a name that no account of the server gives a SID."""
    world = World()
    none = Guard(Token(None), allowance=Allowance(max_owned=0))
    told = "S-1-5-7 may not create one more object, having created 0 of the 0"
    with world.store.read() as view, pytest.raises(DirectoryError, match=told):
        none.check_created(view, ObjectType.QUEUE, "q")
