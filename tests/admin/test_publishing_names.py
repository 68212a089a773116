"""A store into the Active Directory that it came from, whose computers have several names."""

from __future__ import annotations

from contextlib import closing

from mqis.admin.activedirectory.publishing import PublishAction
from mqis.config.stores import open_store
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.responses import AddResponse, LdapResult
from mqis.wire.mqds.objecttype import ObjectType
from tests.admin.test_online_import import imported
from tests.admin.test_publishing import published
from tests.runtime.activedirectory.test_computer_names import COMPUTERS, add_computers


def places(server: ScriptedDomain, ldap_class: bytes) -> set[str]:
    return {entry.name for entry in server.entries if ldap_class in entry.values("objectClass")}


def estate() -> ScriptedDomain:
    """Three routers; the common names of two of them are each other's accounts."""
    server = ScriptedDomain.of()
    add_computers(server, server.add_site("Paris"), COMPUTERS[:3])
    return server


def test_what_the_plan_promises_is_written_below_the_same_computers() -> None:
    server = estate()
    with closing(open_store("memory:")) as store:
        imported(server, store)
        before = places(server, b"mSMQQueue")
        assert len(before) == 3
        server.entries = [e for e in server.entries if e.name not in before]
        planned, _, _ = published(server, store, write=False)
        steps, written, notes = published(server, store)
        assert steps == planned
        promised = [step for step in steps if step.action is PublishAction.CREATE]
        completed = [step for step in steps if step.action is PublishAction.SETTINGS]
        assert (written, len(promised), len(completed)) == (6, 3, 3)
        hosts = {step.name.split("\\")[0].upper() for step in promised}
        assert {step.name.upper() for step in completed} == hosts
        assert all(str(step).endswith(": its settings are made") for step in completed)
        assert places(server, b"mSMQQueue") == before
        # The labels tell whose queue it is: nothing was exchanged.
        for container, name, account, _ in COMPUTERS[:3]:
            place = f"CN=bg0,CN=msmq,CN={name},{container},{server.root}".lower()
            (entry,) = [e for e in server.entries if e.name.lower() == place]
            assert entry.values("mSMQLabelEx") == (account.encode(),)
        assert not [note.what for note in notes if "not written" in note.what]
        # Every router gets the settings that it lacked, with the identifier of its own machine.
        for entry in server.entries:
            if b"mSMQSettings" in entry.values("objectClass"):
                computer = entry.name.split(",")[1]
                machine = next(
                    e for e in server.entries if e.name.startswith(f"CN=msmq,{computer},")
                )
                assert entry.values("mSMQQMID") == machine.values("objectGUID")
        assert len(places(server, b"mSMQSettings")) == 3
        again, written, _ = published(server, store)
        assert written == 0
        assert PublishAction.SETTINGS not in {step.action for step in again}


def test_settings_that_are_refused_are_told_and_the_rest_is_written() -> None:
    server = estate()

    def refuse(message: LdapMessage) -> ScriptedAnswer | None:
        made = message.operation
        if isinstance(made, AddEntry) and made.values("mSMQQMID"):
            return [AddResponse(LdapResult(ResultCode.INSUFFICIENT_ACCESS_RIGHTS, "", "no right"))]
        return None

    with closing(open_store("memory:")) as store:
        imported(server, store)
        before = places(server, b"mSMQQueue")
        server.entries = [e for e in server.entries if e.name not in before]
        server.on_message = refuse
        steps, written, notes = published(server, store)
    refused = [step for step in steps if step.action is PublishAction.REFUSED]
    assert {step.obj.type for step in refused} == {ObjectType.MACHINE}
    assert len(refused) == 3
    assert (written, places(server, b"mSMQQueue")) == (3, before)
    told = [note for note in notes if note.what.startswith("its settings were not written")]
    assert sum(note.count for note in told) == 3
