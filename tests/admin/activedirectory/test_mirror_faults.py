"""What goes wrong in the middle of a mirror's round: taken names, and another domain controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.protocol.activedirectory.mirror.cursor import read_cursor
from mqis.protocol.ldap.errors import LdapError
from mqis.storage.memory_store import MemoryStore
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import RenameEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored
from tests.admin.activedirectory.test_mirror import WAYS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["orders", "bills"])
def test_a_name_is_taken_over_in_either_order(first: str, way: dict[str, Any]) -> None:
    """One of the two is written while the other still has the name; it is written again."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        second = {"orders": "bills", "bills": "orders"}[first]
        queues = {"orders": estate.orders, "bills": estate.bills}
        at = f"CN=msmq,{estate.computer}"
        estate.server.change(RenameEntry(f"CN={first},{at}", "CN=old"))
        estate.server.change(RenameEntry(f"CN={second},{at}", f"CN={first}"))
        done = await estate.mirror.round()

        assert done.counts.left_out == {}
        assert _path(estate, queues[first]) == "srv1\\old"
        assert _path(estate, queues[second]) == f"srv1\\{first}"

    mirrored(test, **way)


def _path(estate: MirroredEstate, queue: Guid) -> object:
    return estate.value(ObjectType.QUEUE, queue, PropId.Q_PATHNAME)


@pytest.mark.req("SEC-15-04")
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_takes_over_while_changes_are_read(way: dict[str, Any]) -> None:
    """The other one has not yet heard of a queue: it is not deleted, and the position stays."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        server = estate.server
        new = estate.add_queue("new")
        await estate.mirror.round()
        before = _position(estate)
        estate.label(new, b"changed")

        def taken_over(request: Any) -> None:
            if str(new) in request.base:  # the change was told by the first server
                server.invocation = Guid(b"K" * 16)
                server.entries = [e for e in server.entries if e.values("objectGUID") != (new.raw,)]
            else:
                server.before_search.append(taken_over)

        server.before_search.append(taken_over)
        with pytest.raises(LdapError, match="answers instead of"):
            await estate.mirror.round()
        assert server.invocation == Guid(b"K" * 16)
        assert _path(estate, new) == "srv1\\new"
        assert _position(estate) == before

    mirrored(test, **way)


def _position(estate: MirroredEstate) -> object:
    with estate.store.read() as view:
        return read_cursor(view)


def test_a_round_that_fails_is_told(tmp_path: Path) -> None:
    """``mqis mirror --once`` ends with the reason, and not as if it had made a round."""

    async def test(estate: MirroredEstate) -> None:
        searched = 0

        def refuse(message: LdapMessage) -> ScriptedAnswer | None:
            nonlocal searched
            searched += isinstance(message.operation, SearchRequest)
            if searched < 8:
                return None
            return [SearchDone(LdapResult(ResultCode.UNWILLING_TO_PERFORM, "", "not today"))]

        estate.server.on_message = refuse
        with pytest.raises(MqisError, match="not today") as caught:
            await estate.follow(MemoryStore(), tmp_path / "journal")
        assert type(caught.value) is MqisError

    mirrored(test)


def test_a_mirror_that_starts_again_sees_deletions_at_once() -> None:
    """A plain account sees none in the changes: the first round looks for what is gone."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.delete(estate.bills)
        again = EstateMirror(estate.client, estate.store, "corp.example")
        assert not (await again.round()).fresh
        assert estate.held()["queue"] == ["srv1\\orders"]

    mirrored(test, shows_deleted=False)
