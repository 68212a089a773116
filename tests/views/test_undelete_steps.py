"""The steps of an undelete, as a client takes them with a server."""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.undeletion.messages import (
    MOST_RESTORED,
    EntryResult,
    EntryState,
    UndeleteEntry,
    UndeleteReply,
    UndeleteRequest,
)
from mqis.views.deletion.undelete_steps import carry_out, make_plan
from mqis.wire.guid import Guid


def entry(number: int, authority: str = "psc", *, follows: bool = False) -> UndeleteEntry:
    key = str(Guid(number.to_bytes(16, "big")))
    return UndeleteEntry("queue", key, None, 0, "", authority, True, follows, EntryState.READY)


class SlowServer:
    """A server with small pages that searches for a while; ``silent`` authorities are down."""

    def __init__(self, entries: list[UndeleteEntry], silent: str = "") -> None:
        self.entries = entries
        self.silent = silent
        self.requests: list[UndeleteRequest] = []
        self.looks = 0

    def undelete(self, request: UndeleteRequest) -> UndeleteReply:
        self.requests.append(request)
        if len(self.requests) < 3:
            return UndeleteReply("t", ready=False)
        total = len(self.entries)
        if request.verb == "page":
            page = tuple(self.entries[request.first : request.first + 2])
            return UndeleteReply("t", total=total, entries=page)
        some = self.entries[request.first : request.first + min(request.count, 2)]
        return UndeleteReply(
            "t", total=total, results=tuple(self._result(request, e) for e in some)
        )

    def _result(self, request: UndeleteRequest, one: UndeleteEntry) -> EntryResult:
        if request.verb == "look":
            self.looks += 1
            return EntryResult(one.id, EntryState.PRESENT if self.looks > 3 else EntryState.MISSING)
        reached = one.authority != self.silent
        return EntryResult(one.id, EntryState.RESTORED if reached else EntryState.UNREACHED)


def test_a_plan_is_read_page_by_page_when_the_search_ends() -> None:
    entries = [entry(number) for number in range(5)]
    server = SlowServer(entries)
    plan = make_plan(server, UndeleteRequest("plan", by="bob"))
    assert plan.entries == tuple(entries)
    assert [request.verb for request in server.requests[:3]] == ["plan", "page", "page"]
    assert server.requests[0].by == "bob"


def test_a_silent_authority_is_asked_once() -> None:
    entries = [entry(1, "dead"), entry(2, "dead"), entry(3), entry(4, "dead"), entry(5)]
    server = SlowServer(entries, silent="dead")
    plan = make_plan(server, UndeleteRequest("plan"))
    outcome = carry_out(server, plan, wait_s=0)
    states = [outcome.results[one.id].state for one in entries]
    assert states == ["unreached", "unreached", "restored", "unreached", "restored"]
    assert "not tried: its authority dead" in outcome.results[entries[3].id].reason
    assert len(outcome.failed) == 3
    restored = [request for request in server.requests if request.verb == "restore"]
    assert [(request.first, request.count) for request in restored] == [(0, 5), (2, 1), (4, 1)]
    assert server.requests[-1].verb == "forget"
    assert max(request.count for request in server.requests) <= MOST_RESTORED


def test_the_servers_of_a_restored_site_get_time_to_send_its_objects() -> None:
    entries = [entry(1), entry(2, follows=True), entry(3, follows=True)]
    server = SlowServer(entries)
    plan = replace(make_plan(server, UndeleteRequest("plan")))
    carry_out(server, plan, wait_s=30)
    verbs = [request.verb for request in server.requests]
    assert verbs.index("restore") < verbs.index("look") < verbs.index("forget")
    assert server.looks >= 4, "it looked until they were there"
