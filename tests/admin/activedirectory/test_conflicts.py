"""A queue manager that loses its name to another one, and controllers that lack attributes."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect
from mqis.admin.activedirectory.estate.sources import check_directory
from mqis.admin.activedirectory.online import import_domains
from mqis.protocol.errors import ProtocolError
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.storage.memory_store import MemoryStore
from mqis.testing.ldap import ScriptedAnswer, entry
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import RenameEntry
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import SearchDone
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored
from tests.admin.activedirectory.test_mirror import WAYS, both


def options(estate: MirroredEstate) -> ConnectingOptions:
    return ConnectingOptions((estate.server.url,), method=BindMethod.ANONYMOUS)


@pytest.mark.parametrize("way", WAYS)
def test_a_queue_manager_that_loses_its_name_keeps_its_queues(way: dict[str, Any]) -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        mark = f"CNF:{estate.machine}"
        estate.server.change(RenameEntry(f"CN=msmq,{estate.computer}", f"CN=msmq\\0A{mark}"))
        other = estate.server.put(
            f"CN=msmq,{estate.computer}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=estate.paris.raw,
        )
        orders = estate.add_queue("orders")
        assert await both(estate) > 0
        assert estate.mirror is not None
        lost = f"srv1\n{mark.lower()}"
        assert estate.held()["queue"] == [f"{lost}\\bills", f"{lost}\\orders", "srv1\\orders"]
        assert estate.held()["machine"] == ["SRV1", f"SRV1\n{mark}"]
        for queue, machine in ((estate.orders, estate.machine), (orders, other)):
            assert estate.value(ObjectType.QUEUE, queue, PropId.Q_QMID) == machine

        await import_domains([options(estate)], imported := MemoryStore())
        with imported.read() as view:
            found = {obj.id: obj.path for obj in view.objects(ObjectType.QUEUE)}
        assert sorted(filter(None, found.values())) == estate.held()["queue"]

        # The administrator deletes the other one, and gives the name back.
        estate.delete(other, tree=True)
        name = f"CN=msmq\\0A{mark},{estate.computer}"
        estate.server.change(RenameEntry(name, "CN=msmq"))
        assert await both(estate) > 0
        assert estate.held()["queue"] == ["srv1\\bills", "srv1\\orders"]

    mirrored(test, **way)


def test_a_queue_is_imported_with_its_own_machine_or_not_at_all() -> None:
    """Two computers of one account name: a damaged domain, whose second machine is left out."""

    async def test(estate: MirroredEstate) -> None:
        server = estate.server
        twin = f"CN=twin,OU=Other,{server.root}"
        server.put(f"OU=Other,{server.root}", objectClass=b"organizationalUnit")
        server.put(twin, objectClass=[b"user", b"computer"], sAMAccountName=b"SRV1$")
        server.put(f"CN=msmq,{twin}", objectClass=b"mSMQConfiguration", mSMQSites=estate.paris.raw)
        server.put(f"CN=strange,CN=msmq,{twin}", objectClass=b"mSMQQueue")
        result = await import_domains([options(estate)], store := MemoryStore())
        told = [subject.name or "" for note in result.notes for subject in note.objects]
        notes = {name.partition(",")[0] for name in told}
        assert notes == {"CN=msmq", "CN=strange"}
        done = await estate.mirror.round()
        assert len(done.left_out) == 2
        with store.read() as view:
            found = sorted(obj.path or "" for obj in view.objects(ObjectType.QUEUE))
        assert found == estate.held()["queue"] == ["srv1\\bills", "srv1\\orders"]

    mirrored(test)


@pytest.mark.parametrize("flags", [b"1", b"513"], ids=["whole", "filtered"])
def test_a_read_only_controller_is_refused_if_it_lacks_an_attribute(flags: bytes) -> None:
    async def test(estate: MirroredEstate) -> None:
        server = estate.server
        service = next(e.name for e in server.entries if e.name.startswith("CN=NTDS Settings"))
        schema = f"CN=Schema,{server.configuration}"

        def answer(message: LdapMessage) -> ScriptedAnswer | None:
            asked = message.operation
            if not isinstance(asked, SearchRequest) or asked.base != schema:
                return None
            known = [
                entry(f"CN={name},{schema}", lDAPDisplayName=name.encode(), searchFlags=value)
                for name, value in (("mSMQSites", flags), ("mSMQLabelEx", b"0"), ("cn", b""))
            ]
            return [*known, SearchDone()]

        server.on_message = answer
        await estate.mirror.round()  # a writable one has all attributes, whatever the schema says
        server._replace(service, objectCategory=b"CN=NTDS-DSA-RO,CN=Schema,CN=Configuration")
        if flags == b"1":
            await estate.mirror.round()
            assert (await check_directory([options(estate)])).counts["queue"] == 2
            return
        told = "does not give mSMQSites: name a writable one"
        with pytest.raises(ProtocolError, match=told):
            await estate.mirror.round()
        for command in (connect(options(estate)), check_directory([options(estate)])):
            with pytest.raises(MqisError, match=told):
                await command

    mirrored(test)
