"""Three servers come to hold the same, and a change reaches them at once."""

from __future__ import annotations

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.replication.enterprise import Enterprise, guid_of


def three() -> Enterprise:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    enterprise.add_psc("psc", "B")
    enterprise.add_bsc("bsc", "psc")
    enterprise.run(5)
    return enterprise


def test_new_servers_get_everything() -> None:
    enterprise = three()
    enterprise.check_converged()
    assert len(enterprise.nodes["bsc"].copy_of(ENTERPRISE_PARTITION)) == 3


def test_a_change_reaches_everybody_at_once() -> None:
    enterprise = three()
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\q")
    enterprise.run(0)
    for node in enterprise.nodes.values():
        assert node.find(ObjectType.QUEUE, "psc\\q") is not None, node.name
    enterprise.check_converged()


def test_updates_and_deletions_too() -> None:
    enterprise = three()
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\q")
    enterprise.create_queue(psc, "psc\\r")
    enterprise.label(psc, "psc\\q", "news")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\r")
    enterprise.run(1)
    enterprise.check_converged()
    assert enterprise.nodes["bsc"].find(ObjectType.QUEUE, "psc\\r") is None
    assert guid_of("psc\\q") in enterprise.nodes["pec"].copy_of(guid_of("B"))


def test_a_forwarded_change_comes_back() -> None:
    enterprise = three()
    bsc = enterprise.nodes["bsc"]
    request = enterprise.create_queue(bsc, "pec\\q")
    enterprise.run(1)
    assert request is not None
    assert bsc.answers() == {request: 0}
    enterprise.check_converged()
    assert bsc.find(ObjectType.QUEUE, "pec\\q") is not None
