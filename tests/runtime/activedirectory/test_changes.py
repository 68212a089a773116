"""Changes by a pass-through server: which entry, which operations, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mqis.runtime.directory.context import MOST_TRIES
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import LdapFault
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
)
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import SdFlags, sd_flags, tree_delete
from mqis.wire.ldap.filters import Present
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import AddResponse, DeleteResponse, LdapResult, ModifyResponse
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts, digest_of
from mqis.wire.mqds.keys import BASE_PROVIDER, PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, EVERYONE
from tests.runtime.activedirectory.passing import Through, through
from tests.runtime.directory.serving import ALICE, BOB, OK, Caller, scenario

DENIED, UNWILLING = ResultCode.INSUFFICIENT_ACCESS_RIGHTS, ResultCode.UNWILLING_TO_PERFORM
_ANSWERS: dict[type, Any] = {
    AddEntry: AddResponse,
    ModifyEntry: ModifyResponse,
    DeleteEntry: DeleteResponse,
}
Given = dict[P, Value]


def _typed(given: Given) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    return tuple(map(int, given)), tuple(prop(propid, value) for propid, value in given.items())


async def create(caller: Caller, kind: int, path: str | None, given: Given) -> tuple[int, Any]:
    request = dscomm.CreateObject(kind, path, None, *_typed(given), Guid.NULL)
    got = await caller.call(dscomm.CREATE_OBJECT, request)
    return got.result, got.guid


async def write(caller: Caller, kind: int, name: Guid | str, given: Given) -> int:
    """Writes to the object of an identifier or of a path."""
    if isinstance(name, Guid):
        by_guid = dscomm.SetPropsGuid(kind, name, *_typed(given))
        return (await caller.call(dscomm.SET_PROPS_GUID, by_guid)).result
    by_path = dscomm.SetProps(kind, name, *_typed(given))
    return (await caller.call(dscomm.SET_PROPS, by_path)).result


async def delete(caller: Caller, kind: int, guid: Guid) -> int:
    return (await caller.call(dscomm.DELETE_OBJECT_GUID, dscomm.ByGuid(kind, guid))).result


def changes(server: ScriptedDomain) -> list[LdapMessage]:
    return [m for m in server.received if type(m.operation) in _ANSWERS]


def refusing(at: int, code: int) -> Any:
    """Refuses one change, counted from 0; the server makes the others."""
    seen = 0

    def script(message: LdapMessage) -> Any:
        nonlocal seen
        answer = _ANSWERS.get(type(message.operation))
        seen += answer is not None
        return [answer(LdapResult(code))] if answer is not None and seen == at + 1 else None

    return script


def values(passing: Through, guid: Guid, attribute: str) -> Sequence[bytes]:
    entry = passing.server.by_guid(guid)
    assert entry is not None
    return entry.values(attribute)


def settings(passing: Through, computer: str) -> list[Sequence[bytes]]:
    """The services in the settings of a server."""
    return [
        entry.values("mSMQServices")
        for entry in passing.server.entries
        if entry.name.startswith(f"CN=MSMQ Settings,CN={computer},")
    ]


# --- creating -------------------------------------------------------------------------------------


LABEL: Given = {P.Q_LABEL: "x"}
EVERYTHING: Given = {
    P.Q_TYPE: Guid(b"t" * 16), P.Q_JOURNAL: 1, P.Q_QUOTA: 5, P.Q_BASEPRIORITY: -3,
    P.Q_JOURNAL_QUOTA: 6, P.Q_LABEL: "New", P.Q_AUTHENTICATE: 1, P.Q_PRIV_LEVEL: 2,
    P.Q_TRANSACTION: 1,
}  # fmt: skip
STORED = {
    "mSMQQueueType": b"t" * 16, "mSMQJournal": b"TRUE", "mSMQQueueQuota": b"5",
    "mSMQBasePriority": b"-3", "mSMQQueueJournalQuota": b"6", "mSMQLabelEx": b"New",
    "mSMQAuthenticate": b"TRUE", "mSMQPrivacyLevel": b"2", "mSMQTransactional": b"TRUE",
}  # fmt: skip


@pytest.mark.req("MQDSSM-3.1.6.1-02", "MQDSSM-3.1.6.1.2.2-06")
@scenario
async def test_everything_given_is_stored_under_a_name_that_is_unique_without_case() -> None:
    async with through() as passing:
        caller = passing.caller
        result, guid = await create(caller, ObjectType.QUEUE, "SRV1\\New", EVERYTHING)
        assert result == OK
        assert {name: values(passing, guid, name) for name in STORED} == {
            name: (value,) for name, value in STORED.items()
        }
        again, nothing = await create(caller, ObjectType.QUEUE, "srv1\\nEW", EVERYTHING)
        assert (again, nothing or Guid.NULL) == (HResult.MQ_ERROR_QUEUE_EXISTS, Guid.NULL)
        long = "x" * 70  # these differ behind the part of the name that the entry has
        for name in (long + "1", long + "2"):
            assert (await create(caller, ObjectType.QUEUE, f"SRV1\\{name}", LABEL))[0] == OK
            again, _ = await create(caller, ObjectType.QUEUE, f"SRV1\\{name.upper()}", LABEL)
            assert again == HResult.MQ_ERROR_QUEUE_EXISTS


@pytest.mark.req("MQDSSM-3.1.6.20.2-01")
@scenario
async def test_only_public_queues_are_in_the_directory() -> None:
    async with through() as passing:
        for path in ("SRV1\\private$\\mine", "SRV1\\system$;journal"):
            result, _ = await create(passing.caller, ObjectType.QUEUE, path, LABEL)
            assert result == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        assert changes(passing.server) == []
        result, guid = await create(passing.caller, ObjectType.QUEUE, "SRV1\\public", LABEL)
        assert (result, values(passing, guid, "objectClass")) == (OK, (b"mSMQQueue",))


KEYS = PublicKeys(
    (PublicKey.of(RsaPublicKey.of((1 << 511) | 1, 65_537), BASE_PROVIDER),)
).to_bytes()
SERVER: Given = {P.QM_SERVICE: 1, P.QM_SIGN_PKS: KEYS}
#: The machine, the keys at its computer, the entries above the settings, the settings anew.
STEPS = [AddEntry, ModifyEntry, AddEntry, AddEntry, DeleteEntry, AddEntry]


@pytest.mark.req("MQDSSM-3.1.6.1.1.2-05", "MQDSSM-3.1.6.12-05", "MQDSSM-3.1.6.1.1.3-01")
@scenario
async def test_each_step_of_a_creation_that_fails_ends_it_with_its_status() -> None:
    async with through() as passing:
        caller, server = passing.caller, passing.server
        server.add_computer("SRV2")
        given: Given = {P.QM_SITE_ID: passing.estate.berlin, **SERVER}
        before = list(server.entries)
        for step in range(len(STEPS)):
            for code, status in (
                (DENIED, HResult.MQ_ERROR_DS_ERROR),
                (ResultCode.NO_SUCH_ATTRIBUTE, HResult.E_ADS_PROPERTY_NOT_FOUND),
            ):
                server.entries = list(before)
                server.received.clear()
                server.on_message = refusing(step, code)
                result, _ = await create(caller, ObjectType.MACHINE, "SRV2", given)
                assert result == status, step
                assert [type(m.operation) for m in changes(server)] == STEPS[: step + 1]
        server.entries, server.on_message = list(before), None
        server.received.clear()
        result, guid = await create(caller, ObjectType.MACHINE, "SRV2", given)
        assert result == OK
        assert [type(m.operation) for m in changes(server)] == STEPS
        assert values(passing, guid, "objectClass") == (b"mSMQConfiguration",)
        assert settings(passing, "SRV2") == [(b"1",)]
        assert server.connections == 1  # a refusal does not cost the connection


@pytest.mark.departs("MQDSSM-3.1.6.1.3.1-01", "MQDSSM-3.1.6.7-05")
@scenario
async def test_a_primary_site_controller_has_no_effect() -> None:
    async with through() as passing:
        caller, controller = passing.caller, {P.S_PSC: "SRV1"}
        result, guid = await create(
            caller, ObjectType.SITE, "Rom", {**controller, P.S_INTERVAL1: 3}
        )
        assert (result, values(passing, guid, "mSMQInterval1")) == (OK, (b"3",))
        entry = passing.server.by_guid(guid)
        assert entry is not None
        assert b"SRV1" not in [value for _, found in entry.attributes for value in found]
        before = len(changes(passing.server))
        assert await write(caller, ObjectType.SITE, "Rom", {**controller}) == OK
        assert len(changes(passing.server)) == before
        assert (await create(caller, ObjectType.SITE, "", {P.S_INTERVAL1: 3}))[0] != OK
        assert await write(caller, ObjectType.SITE, "", {P.S_INTERVAL1: 4}) != OK


@pytest.mark.departs("MQDSSM-3.1.6.12-02")
@scenario
async def test_a_parent_that_is_missing_is_what_the_add_says() -> None:
    async with through() as passing:
        server, machine = passing.server, f"CN=msmq,{passing.estate.computer}"

        def vanish(message: LdapMessage) -> None:
            if isinstance(message.operation, AddEntry):
                server.entries = [e for e in server.entries if not e.name.endswith(machine)]

        server.on_message = vanish
        result, _ = await create(passing.caller, ObjectType.QUEUE, "SRV1\\new", LABEL)
        assert result == HResult.MQDS_OBJECT_NOT_FOUND
        assert ("objectClass",) not in [
            request.attributes
            for request in server.operations(SearchRequest)
            if isinstance(request, SearchRequest)
        ]


@pytest.mark.departs("MQDSSM-2.2.6-04")
@scenario
async def test_an_add_whose_answer_is_lost_is_not_repeated() -> None:
    async with through() as passing:
        caller, server = passing.caller, passing.server
        passing.store.connection._retry_s = 0.0  # callers need not wait for the next try

        def lose(message: LdapMessage) -> Any:
            if not isinstance(message.operation, AddEntry):
                return None
            server._change(message.operation, message.controls)
            return [LdapFault.CLOSE]

        server.on_message = lose
        result, _ = await create(caller, ObjectType.QUEUE, "SRV1\\new", LABEL)
        assert result == HResult.MQ_ERROR_NO_DS
        assert len(changes(server)) == 1
        server.on_message = None
        result, _ = await create(caller, ObjectType.QUEUE, "SRV1\\new", LABEL)
        assert result == HResult.MQ_ERROR_QUEUE_EXISTS


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-3.1.6.7.1.2-02", "MQDSSM-2.2.1-08")
@scenario
async def test_a_machine_by_its_identifier_and_by_its_name_wherever_its_computer_stands() -> None:
    async with through() as passing:
        server = passing.server
        server.put(f"OU=Far,{server.root}", objectClass=b"organizationalUnit")
        far = f"CN=SRV7,OU=Far,{server.root}"
        server.put(far, objectClass=(b"user", b"computer"), sAMAccountName=b"SRV7$")
        sites = passing.estate.berlin.raw
        machine = server.put(f"CN=msmq,{far}", objectClass=b"mSMQConfiguration", mSMQSites=sites)
        names: tuple[Guid | str, ...] = (machine, "SRV7")
        for quota, name in enumerate(names, 5):
            assert await write(passing.caller, ObjectType.MACHINE, name, {P.QM_QUOTA: quota}) == OK
            assert values(passing, machine, "mSMQQuota") == (b"%d" % quota,)
        unknown = await write(passing.caller, ObjectType.MACHINE, "SRV8", {P.QM_QUOTA: 1})
        assert unknown == HResult.MQDS_OBJECT_NOT_FOUND


@pytest.mark.req("MQDSSM-3.1.6.13-01", "MQDSSM-3.1.6.19-01")
@scenario
async def test_the_identifier_finds_an_entry_that_has_another_name_by_now() -> None:
    async with through() as passing:
        server, orders = passing.server, passing.estate.queues[0]
        names = [f"CN={name},CN=msmq,{passing.estate.computer}" for name in ("orders", "renamed")]
        read: list[str] = []

        def rename(message: LdapMessage) -> None:
            """Renames the entry once it was read by the path of the caller."""
            if names[0] in read:
                server.entries = [
                    replace(e, name=names[1]) if e.name == names[0] else e for e in server.entries
                ]
            if isinstance(message.operation, SearchRequest):
                read.append(message.operation.base)

        server.on_message = rename
        assert await write(passing.caller, ObjectType.QUEUE, "SRV1\\orders", {P.Q_QUOTA: 9}) == OK
        assert values(passing, orders, "mSMQQueueQuota") == (b"9",)
        (message,) = changes(server)
        assert isinstance(message.operation, ModifyEntry)
        assert message.operation.name == names[1]
        asked = [r for r in server.operations(SearchRequest) if isinstance(r, SearchRequest)]
        assert [r.scope for r in asked if r.base == f"<GUID={orders}>"] == [SearchScope.BASE]


@pytest.mark.req("MQDSSM-3.1.6.7.4.2-02")
@scenario
async def test_a_site_by_its_identifier_and_by_its_name() -> None:
    async with through() as passing:
        caller, paris = passing.caller, passing.estate.paris
        names: tuple[Guid | str, ...] = (paris, "PARIS")
        for interval, name in enumerate(names, 5):
            assert await write(caller, ObjectType.SITE, name, {P.S_INTERVAL1: interval}) == OK
            assert values(passing, paris, "mSMQInterval1") == (b"%d" % interval,)
        passing.server.on_message = refusing(0, ResultCode.NO_SUCH_ATTRIBUTE)
        refused = await write(caller, ObjectType.SITE, "Paris", {P.S_INTERVAL1: 9})
        assert refused == HResult.E_ADS_PROPERTY_NOT_FOUND


@pytest.mark.req("MQDSSM-3.1.6.7.5.2-02")
@scenario
async def test_a_link_by_its_identifier() -> None:
    async with through() as passing:
        caller, link = passing.caller, passing.estate.link
        assert await write(caller, ObjectType.ROUTINGLINK, link, {P.L_ACTUAL_COST: 9}) == OK
        assert values(passing, link, "mSMQCost") == (b"9",)
        for code, status in (
            (DENIED, HResult.MQ_ERROR_DS_ERROR),
            (ResultCode.NO_SUCH_OBJECT, HResult.MQDS_OBJECT_NOT_FOUND),
        ):
            passing.server.on_message = refusing(0, code)
            result = await write(caller, ObjectType.ROUTINGLINK, link, {P.L_ACTUAL_COST: 8})
            assert result == status


@pytest.mark.req("MQDSSM-3.1.6.7-04")
@scenario
async def test_a_write_that_was_interrupted_is_completed_by_the_same_write() -> None:
    async with through() as passing:
        caller, machine, server = passing.caller, passing.estate.machine, passing.server
        given: Given = {P.QM_SERVICE: 9, P.QM_QUOTA: 5}
        # The entries above, the old settings, the new ones, the machine.
        for step in range(5):
            server.on_message = refusing(step, UNWILLING)
            result = await write(caller, ObjectType.MACHINE, machine, given)
            assert result == HResult.MQ_ERROR_DS_ERROR
            assert values(passing, machine, "mSMQServiceType") == ()
        assert settings(passing, "SRV1") == [(b"9",)]  # what was made before the failure stays
        server.on_message = None
        assert await write(caller, ObjectType.MACHINE, machine, given) == OK
        assert values(passing, machine, "mSMQServiceType") == (b"9",)
        assert settings(passing, "SRV1") == [(b"9",)]
        server.on_message = refusing(0, UNWILLING)
        none: Given = {P.QM_SERVICE: 0}
        assert await write(caller, ObjectType.MACHINE, machine, none) == HResult.MQ_ERROR_DS_ERROR
        server.on_message = None
        assert await write(caller, ObjectType.MACHINE, machine, none) == OK
        assert settings(passing, "SRV1") == []


@pytest.mark.departs("MQDSSM-3.1.6.17-01")
@scenario
async def test_a_descriptor_is_replaced_after_one_read() -> None:
    async with through() as passing:
        server, queue = passing.server, passing.estate.queues[0]
        wanted = SecurityDescriptor(dacl=Acl((allow(EVERYONE, 0x24),))).to_bytes()
        request = dscomm.SetSecurityGuid(ObjectType.QUEUE, queue, 4, wanted)
        done = await passing.caller.call(dscomm.SET_OBJECT_SECURITY_GUID, request)
        assert done.result == OK
        (message,) = changes(server)
        assert isinstance(message.operation, ModifyEntry)
        assert [change.attribute for change in message.operation.changes] == [
            "nTSecurityDescriptor"
        ]
        assert sd_flags(SdFlags.OWNER | SdFlags.DACL) in message.controls
        assert Present("nTSecurityDescriptor") not in [
            request.filter
            for request in server.operations(SearchRequest)
            if isinstance(request, SearchRequest)
        ]


# --- users ----------------------------------------------------------------------------------------


#: Of the enterprise: everybody reads it.
READABLE = SecurityDescriptor(
    owner=ADMINISTRATORS, dacl=Acl((allow(EVERYONE, 0x0002_0014),))
).to_bytes()


def registered(who: Any, certificate: bytes) -> Given:
    listed = UserSignCerts.wrap(certificate, Guid(b"c" * 16)).to_bytes()
    digests = (Guid(digest_of(certificate)),)
    return {P.U_SID: who.sid.to_bytes(), P.U_SIGN_CERT: listed, P.U_DIGEST: digests}


@pytest.mark.req("MQDSSM-3.1.6.7.1.10-01")
@pytest.mark.departs(
    "MQDSSM-2.2.1-04", "MQDSSM-3.1.6.7.6.2-02", "MQDSSM-3.1.6.7.6.2-03",
)  # fmt: skip
@scenario
async def test_a_user_registers_certificates_with_the_account_of_the_server() -> None:
    async with through() as passing:
        server = passing.server
        server.put(f"OU=Staff,{server.root}", objectClass=b"organizationalUnit")
        alice = server.put(  # outside of CN=Users, with a name that another has
            f"CN=anna,OU=Staff,{server.root}",
            objectClass=(b"person", b"user"),
            objectCategory=b"person",
            objectSid=ALICE.sid.to_bytes(),
        )
        services = f"CN=MsmqServices,CN=Services,{server.configuration}"
        replaced = AttributeChange(ModifyKind.REPLACE, "nTSecurityDescriptor", (READABLE,))
        server._change(ModifyEntry(services, (replaced,)), ())
        one, two = (registered(ALICE, certificate) for certificate in (b"one", b"two"))
        async with passing.served.caller(ALICE) as caller, passing.served.caller(BOB) as other:
            for given in (one, two):
                assert (await create(caller, ObjectType.USER, None, given))[0] == OK
            stored = UserSignCerts.from_bytes(values(passing, alice, "mSMQSignCertificates")[0])
            assert [c.certificate for c in stored.certificates] == [b"one", b"two"]
            assert set(values(passing, alice, "mSMQDigests")) == {
                digest_of(b"one"), digest_of(b"two"),
            }  # fmt: skip
            forged = registered(ALICE, b"forged")
            refused, _ = await create(other, ObjectType.USER, None, forged)
            assert refused == HResult.MQ_ERROR_ACCESS_DENIED
            bob = registered(BOB, b"bob")
            unknown, _ = await create(passing.caller, ObjectType.USER, None, bob)
            assert unknown == HResult.MQ_ERROR_UNSUPPORTED_OPERATION
            assert await delete(caller, ObjectType.USER, Guid(digest_of(b"one"))) == OK
        assert values(passing, alice, "mSMQDigests") == (digest_of(b"two"),)
        assert server.connections == 1  # that of the server's account


def add_alice(server: ScriptedDomain, **attributes: bytes) -> Guid:
    """An account of ALICE, who may read the enterprise."""
    services = f"CN=MsmqServices,CN=Services,{server.configuration}"
    replaced = AttributeChange(ModifyKind.REPLACE, "nTSecurityDescriptor", (READABLE,))
    server._change(ModifyEntry(services, (replaced,)), ())
    return server.add_user("alice", ALICE.sid.to_bytes(), **attributes)


class SecondWriter:
    """Another server, which registers a certificate right before changes of ours arrive."""

    def __init__(
        self, server: ScriptedDomain, user: Guid, times: int, name: bytes = b"other"
    ) -> None:
        self.server, self.user, self.times, self.name = server, user, times, name
        self.written: list[bytes] = []

    def __call__(self, message: LdapMessage) -> None:
        if not isinstance(message.operation, ModifyEntry) or len(self.written) == self.times:
            return
        entry = self.server.by_guid(self.user)
        assert entry is not None
        held = [c for data in entry.values("mSMQSignCertificates") for c in listed(data)]
        self.written.append(b"%b %d" % (self.name, len(self.written)))
        new = UserSignCerts.wrap(self.written[-1], Guid(b"o" * 16)).certificates
        value = UserSignCerts((*held, *new)).to_bytes()
        digests = tuple(digest_of(c.certificate) for c in (*held, *new))
        made = (("mSMQSignCertificates", (value,)), ("mSMQDigests", digests))
        changes = tuple(AttributeChange(ModifyKind.REPLACE, *row) for row in made)
        self.server._change(ModifyEntry(entry.name, changes), ())


def listed(data: bytes) -> tuple[UserSignCert, ...]:
    return UserSignCerts.from_bytes(data).certificates


def certificates(passing: Through, user: Guid) -> list[bytes]:
    held = values(passing, user, "mSMQSignCertificates")
    found = [c.certificate for data in held for c in listed(data)]
    assert set(values(passing, user, "mSMQDigests")) == set(map(digest_of, found))
    return found


@pytest.mark.parametrize("before", [(), (b"first",)])
@scenario
async def test_a_certificate_that_another_server_registers_in_between_stays(
    before: tuple[bytes, ...],
) -> None:
    async with through() as passing:
        alice = add_alice(passing.server)
        async with passing.served.caller(ALICE) as caller:
            for certificate in before:
                given = registered(ALICE, certificate)
                assert (await create(caller, ObjectType.USER, None, given))[0] == OK
            passing.server.on_message = SecondWriter(passing.server, alice, 2)
            given = registered(ALICE, b"ours")
            assert (await create(caller, ObjectType.USER, None, given))[0] == OK
            assert certificates(passing, alice) == [*before, b"other 0", b"other 1", b"ours"]
            passing.server.on_message = SecondWriter(passing.server, alice, 1, b"third")
            assert await delete(caller, ObjectType.USER, Guid(digest_of(b"ours"))) == OK
        assert certificates(passing, alice) == [*before, b"other 0", b"other 1", b"third 0"]


@scenario
async def test_a_last_certificate_that_goes_takes_no_other_along() -> None:
    async with through() as passing:
        alice = add_alice(passing.server)
        async with passing.served.caller(ALICE) as caller:
            given = registered(ALICE, b"last")
            assert (await create(caller, ObjectType.USER, None, given))[0] == OK
            passing.server.on_message = SecondWriter(passing.server, alice, 1)
            assert await delete(caller, ObjectType.USER, Guid(digest_of(b"last"))) == OK
        assert certificates(passing, alice) == [b"other 0"]


@scenario
async def test_a_user_whom_others_change_all_the_time_is_an_error() -> None:
    async with through() as passing:
        alice = add_alice(passing.server)
        other = passing.server.on_message = SecondWriter(passing.server, alice, 1000)
        async with passing.served.caller(ALICE) as caller:
            result, _ = await create(caller, ObjectType.USER, None, registered(ALICE, b"ours"))
        assert result == HResult.MQ_ERROR_DS_ERROR
        assert len(other.written) == MOST_TRIES
        assert certificates(passing, alice) == other.written


# --- deleting -------------------------------------------------------------------------------------


@pytest.mark.departs("MQDSSM-3.1.6.13-02")
@scenario
async def test_an_entry_is_deleted_without_a_look_at_its_parent() -> None:
    async with through() as passing:
        server, estate = passing.server, passing.estate
        assert await delete(passing.caller, ObjectType.QUEUE, estate.queues[0]) == OK
        (message,) = changes(server)
        assert message.controls == ()
        assert await delete(passing.caller, ObjectType.MACHINE, estate.machine) == OK
        assert tree_delete in changes(server)[1].controls
        looked_up = [
            request.base
            for request in server.operations(SearchRequest)
            if isinstance(request, SearchRequest) and request.attributes == ("objectClass",)
        ]
        assert looked_up == []
        gone = await delete(passing.caller, ObjectType.QUEUE, estate.queues[0])
        assert gone == HResult.MQDS_OBJECT_NOT_FOUND


# --- rights ---------------------------------------------------------------------------------------


@pytest.mark.req("MQDSSM-5.1-01")
@scenario
async def test_descriptors_are_written_only_to_what_message_queuing_owns() -> None:
    async with through() as passing:
        caller, server, estate = passing.caller, passing.server, passing.estate
        server.add_computer("SRV2")
        rom, oslo = (server.add_site(name) for name in ("Rom", "Oslo"))
        machine: Given = {P.QM_SITE_ID: estate.berlin, **SERVER}
        link: Given = {P.L_NEIGHBOR1: rom, P.L_NEIGHBOR2: oslo, P.L_ACTUAL_COST: 1}
        for kind, path, given in (
            (ObjectType.QUEUE, "SRV1\\new", EVERYTHING),
            (ObjectType.MACHINE, "SRV2", machine),
            (ObjectType.ROUTINGLINK, "link", link),
        ):
            assert (await create(caller, kind, path, given))[0] == OK, kind
        assert await write(caller, ObjectType.USER, estate.user, {P.U_SIGN_CERT: b""}) == OK
        guarded = set()
        for message in changes(server):
            match message.operation:
                case AddEntry() as added if added.values("nTSecurityDescriptor"):
                    guarded |= set(added.values("objectClass"))
                case ModifyEntry(name, changed):
                    assert "nTSecurityDescriptor" not in [c.attribute for c in changed], name
        assert guarded == {b"mSMQQueue", b"mSMQConfiguration"}
        # An administrator of mqis gets no further than the account of the server.
        server.on_message = refusing(0, DENIED)
        denied = await write(caller, ObjectType.QUEUE, estate.queues[0], LABEL)
        assert denied == HResult.MQ_ERROR_DS_ERROR
