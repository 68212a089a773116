"""A small estate in the domain controller for tests."""

from __future__ import annotations

from mqis.testing.activedirectory import ScriptedDomain
from mqis.wire.guid import Guid

SID = bytes.fromhex("010500000000000515000000010000000200000003000000f4010000")


class Estate:
    """Two sites with a link; SRV1, a router of Berlin, with two queues; a user with a digest."""

    def __init__(self, server: ScriptedDomain) -> None:
        self.server = server
        self.berlin = server.add_site("Berlin")
        self.paris = server.add_site("Paris", mSMQSiteForeign=b"TRUE")
        self.computer = server.add_computer("SRV1", mSMQSignCertificates=b"certificates")
        self.machine = server.put(
            f"CN=msmq,{self.computer}",
            objectClass=b"mSMQConfiguration",
            mSMQSites=self.berlin.raw,
            mSMQRoutingServices=b"TRUE",
        )
        self.queues = [
            self.add_queue("orders", mSMQQueueQuota=b"7", mSMQQueueType=b"t" * 16),
            self.add_queue("bills", mSMQLabelEx=b"bills"),
        ]
        services = f"CN=MsmqServices,CN=Services,{server.configuration}"
        names = [f"CN={n},CN=Sites,{server.configuration}".encode() for n in ("Berlin", "Paris")]
        self.link = server.put(
            f"CN=link,{services}",
            objectClass=b"mSMQSiteLink",
            mSMQSite1=names[0],
            mSMQSite2=names[1],
            mSMQCost=b"7",
            mSMQSiteGates=f"CN=msmq,{self.computer}".encode(),
        )
        self.user = server.add_user("anna", SID, mSMQDigests=b"d" * 16)
        server.add_user("bert", SID[:-1] + b"!")

    def add_queue(self, name: str, **attributes: bytes) -> Guid:
        place = f"CN={name},CN=msmq,{self.computer}"
        return self.server.put(place, objectClass=b"mSMQQueue", **attributes)
