"""Logging of refusals, and its rate limit."""

from __future__ import annotations

import pytest

from mqis.protocol.queueing.events import SessionClosed, SessionOpened
from mqis.runtime.node.refusallog import PER_PEER, PER_REASON, TOGETHER, WINDOW_S, RefusalLog
from mqis.wire.guid import Guid

KNOWN = Guid(bytes(15) + b"\x01")
STRANGER = Guid(bytes(15) + b"\x02")


@pytest.fixture
def refusals(caplog: pytest.LogCaptureFixture) -> RefusalLog:
    caplog.set_level("INFO")
    made = RefusalLog({KNOWN: "psc2"}.get)
    made.opened(SessionOpened(1, KNOWN, None, "10.0.0.2"))
    made.opened(SessionOpened(2, STRANGER, None, "10.0.0.3"))
    return made


@pytest.mark.req("SEC-3-05")
def test_a_line_has_peer_address_and_reason(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    refusals.message_refused(1, "", "not signed", 0.0)
    refusals.message_refused(2, "", "not signed", 0.0)
    refusals.message_refused(1, "psc2", "a purge that nobody asked about", 0.0)
    refusals.message_refused(0, "far", "nothing can be sent there", 0.0)
    refusals.message_refused(99, "", "not signed", 0.0)
    refusals.session_refused(SessionClosed(3, None, None, "refused: x", "10.0.0.9", True), 0.0)
    assert caplog.messages == [
        "refused from psc2 at 10.0.0.2: not signed",
        f"refused from {STRANGER} at 10.0.0.3: not signed",
        "refused from psc2 at 10.0.0.2: a purge that nobody asked about",
        "refused from far: nothing can be sent there",
        "refused from nobody: not signed",
        "connection from 10.0.0.9: refused: x",
    ]


@pytest.mark.req("SEC-3-05")
def test_each_reason_a_few_times_a_minute_and_then_what_was_left_out(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        refusals.message_refused(1, "", "not signed", 0.0)
    assert len(caplog.messages) == PER_REASON
    refusals.message_refused(1, "", "another reason", 1.0)
    assert len(caplog.messages) == PER_REASON + 1
    refusals.tell_left_out(WINDOW_S - 1)
    assert len(caplog.messages) == PER_REASON + 1
    refusals.tell_left_out(WINDOW_S)
    assert caplog.messages[-1] == f"refused from psc2: {100 - PER_REASON} more like these"
    refusals.message_refused(1, "", "not signed", WINDOW_S + 1)
    assert caplog.messages[-1] == "refused from psc2 at 10.0.0.2: not signed"


@pytest.mark.req("SEC-3-05")
def test_reasons_that_differ_each_time_are_bounded_too(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(1000):
        refusals.message_refused(1, "", f"number {n}", 0.0)
    assert len(caplog.messages) == PER_PEER
    refusals.close()
    assert caplog.messages[-1] == f"refused from psc2: {1000 - PER_PEER} more like these"


@pytest.mark.req("SEC-3-05")
def test_a_crowd_of_peers_is_bounded_too(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(5000):
        address = f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"
        refusals.session_refused(SessionClosed(n, None, None, "refused: x", address, True), 0.0)
    assert len(caplog.messages) == TOGETHER
    refusals.close()
    told = caplog.messages[TOGETHER:]
    assert len(told) <= PER_PEER + 1
    assert sum(int(line.rpartition(": ")[2].split()[0]) for line in told) == 5000 - TOGETHER


def test_sessions_are_forgotten_after_a_while(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(10, 3000):
        refusals.opened(SessionOpened(n, STRANGER, None, "10.0.0.3"))
    refusals.message_refused(1, "", "not signed", 0.0)
    refusals.message_refused(2999, "", "not signed", 0.0)
    assert caplog.messages[0] == "refused from nobody: not signed"
    assert "at 10.0.0.3" in caplog.messages[1]
