"""Several domains of one forest into one store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.online import import_domains
from mqis.admin.activedirectory.taking import EstateResult
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.storage.memory_store import MemoryStore
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

CHILD = "DC=child,DC=corp,DC=example"


class TwoDomains:
    """Site Berlin with SRV1 in the parent's domain; Paris with SRV2 in the child's; a link.

    SRV2 is a gate of the link. The parent's controller has no more of it than its name, and refers
    those who ask for it to the child.
    """

    def __init__(self) -> None:
        self.parent, self.child = ScriptedDomain.of(), ScriptedDomain.of(CHILD)
        # Identifiers are unique in a forest.
        self.child._numbers = 1000
        self._share_configuration()
        parent = self.parent
        self.sites = {name: parent.add_site(name) for name in ("Berlin", "Paris")}
        self.machines = {
            "SRV1": self._machine(parent, "SRV1", "Berlin"),
            "SRV2": self._machine(self.child, "SRV2", "Paris"),
        }
        gates = [
            f"CN=msmq,CN=SRV{n},CN=Computers,{d.root}" for n, d in ((1, parent), (2, self.child))
        ]
        parent.entries.append(
            SearchEntry(gates[1], (("objectGUID", (self.machines["SRV2"].raw,)),))
        )
        ends = [f"CN={name},CN=Sites,{parent.configuration}".encode() for name in self.sites]
        parent.put(
            f"CN=link,CN=MsmqServices,CN=Services,{parent.configuration}",
            objectClass=b"mSMQSiteLink", mSMQCost=b"3", mSMQSite1=ends[0], mSMQSite2=ends[1],
            mSMQSiteGates=[gate.encode() for gate in gates],
        )  # fmt: skip
        parent.on_message = self._refer

    def _machine(self, domain: ScriptedDomain, name: str, site: str) -> Guid:
        at = f"CN=msmq,{domain.add_computer(name)}"
        made = domain.put(at, objectClass=b"mSMQConfiguration", mSMQSites=self.sites[site].raw)
        domain.put(f"CN=orders,{at}", objectClass=b"mSMQQueue")
        return made

    def _share_configuration(self) -> None:
        child = self.child
        for at, found in enumerate(child.entries):
            if not found.name:
                shared = {
                    "configurationNamingContext": (self.parent.configuration.encode(),),
                    "rootDomainNamingContext": (self.parent.root.encode(),),
                }
                rows = {**dict(found.attributes), **shared}
                child.entries[at] = SearchEntry("", tuple(rows.items()))
        child.entries = [e for e in child.entries if "CN=Configuration" not in e.name]

    def _refer(self, message: LdapMessage) -> ScriptedAnswer | None:
        asked = message.operation
        if isinstance(asked, SearchRequest) and str(self.machines["SRV2"]) in asked.base:
            to = f"ldap://child.corp.example/{asked.base}"
            return [SearchDone(LdapResult(ResultCode.REFERRAL, referrals=(to,)))]
        return None


def imported(servers: Sequence[ScriptedDomain], store: MemoryStore) -> EstateResult:
    async def run() -> EstateResult:
        async with servers[0], servers[-1]:
            domains = [
                ConnectingOptions((server.url,), method=BindMethod.ANONYMOUS) for server in servers
            ]
            return await import_domains(domains, store)

    return asyncio.run(run())


def test_machines_queues_and_gates_of_both_domains() -> None:
    made, store = TwoDomains(), MemoryStore()
    result = imported((made.parent, made.child), store)
    assert not result.notes
    with store.read() as view:
        names = {kind: sorted(o.path or "" for o in view.objects(kind)) for kind in ObjectType}
        gates = {o.path: o.value(PropId.S_GATES) for o in view.objects(ObjectType.SITE)}
    assert names[ObjectType.SITE] == ["Berlin", "Paris"]
    assert names[ObjectType.MACHINE] == ["SRV1", "SRV2"]
    assert names[ObjectType.QUEUE] == ["srv1\\orders", "srv2\\orders"]
    assert gates == {"Berlin": (made.machines["SRV1"],), "Paris": (made.machines["SRV2"],)}
    assert store.check() == []


def test_one_domain_alone_has_no_gates_of_the_other() -> None:
    made, store = TwoDomains(), MemoryStore()
    imported((made.parent,), store)
    with store.read() as view:
        gates = {o.path: o.value(PropId.S_GATES) for o in view.objects(ObjectType.SITE)}
    assert gates == {"Berlin": (made.machines["SRV1"],), "Paris": ()}


def test_two_controllers_of_one_domain_and_two_forests_are_refused() -> None:
    store = MemoryStore()
    with pytest.raises(MqisError, match="two of these are controllers of DC=corp,DC=example"):
        imported((TwoDomains().parent, TwoDomains().parent), store)
    with pytest.raises(MqisError, match="belongs to another forest than DC=corp,DC=example"):
        imported((TwoDomains().parent, ScriptedDomain.of("DC=other,DC=example")), store)
    with store.read() as view:
        assert not view.partitions()
