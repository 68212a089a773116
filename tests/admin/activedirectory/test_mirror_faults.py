"""What goes wrong in the middle of a mirror's round: taken names, and another domain controller."""

from __future__ import annotations

from typing import Any

import pytest

from mqis.admin.activedirectory.mirror.round import MirrorInterrupted
from mqis.protocol.activedirectory.mirror.cursor import read_cursor
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import RenameEntry
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
        with pytest.raises(MirrorInterrupted, match="answers instead of"):
            await estate.mirror.round()
        assert server.invocation == Guid(b"K" * 16)
        assert _path(estate, new) == "srv1\\new"
        assert _position(estate) == before

    mirrored(test, **way)


def _position(estate: MirroredEstate) -> object:
    with estate.store.read() as view:
        return read_cursor(view)
