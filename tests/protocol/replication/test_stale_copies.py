"""A restored authority is not taken in by copies that an earlier life of it asked for.

Transport sends again what was not acknowledged, so an answer to a server that was killed reaches
the one that is put back in its place.
"""

from __future__ import annotations

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import SyncReply
from tests.protocol.replication.enterprise import Enterprise, guid_of

SITE_B = guid_of("B")


def test_an_old_copy_that_comes_late_is_not_taken_for_the_new_one() -> None:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.run(70)
    asked = enterprise.messages(SyncReply, to="psc", sender="pec")
    old = [reply for reply in asked if reply.partition == SITE_B]
    assert old
    backup = enterprise.backup("psc")
    enterprise.create_queue(psc, "psc\\late")
    enterprise.run(5)
    assert enterprise.nodes["pec"].find(ObjectType.QUEUE, "psc\\late") is not None
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", backup, authority=True)
    silence()
    for reply in old:
        enterprise.inject("pec", "psc", reply)
    enterprise.run(130)
    assert psc.recovered()
    assert psc.find(ObjectType.QUEUE, "psc\\late") is not None
    enterprise.run(130)
    enterprise.check_converged()
    assert enterprise.nodes["pec"].find(ObjectType.QUEUE, "psc\\late") is not None
