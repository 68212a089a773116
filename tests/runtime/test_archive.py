"""The archiving thread: it reports once, retries by itself, and closing never waits for a store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from threading import Event
from time import monotonic

import pytest

from mqis.protocol.errors import StorageError
from mqis.runtime import archive_thread
from mqis.runtime.archive_thread import ArchiveThread
from tests.waiting import DEADLINE_S, wait_until


class Archiver:
    """Fails while ``error`` is set, and hangs while ``open`` is clear."""

    def __init__(self) -> None:
        self.error: str = ""
        self.open = Event()
        self.open.set()
        self.steps = 0
        self.entered = Event()

    def step(self, stopped: Callable[[], bool]) -> int:
        self.entered.set()
        self.open.wait()
        self.steps += 1
        if self.error:
            raise StorageError(self.error)
        return 1


def started(archiver: Archiver) -> tuple[ArchiveThread, list[str], list[int]]:
    reports: list[str] = []
    archived: list[int] = []
    thread = ArchiveThread(
        archiver,
        lambda: archived.append(archiver.steps),
        lambda error: reports.append("" if error is None else str(error)),
        look_s=0.01,
        retry_s=0.01,
    )
    return thread, reports, archived


def test_it_archives_again_and_again() -> None:
    archiver = Archiver()
    thread, reports, archived = started(archiver)
    wait_until(lambda: len(archived) > 2 or None)
    thread.close()
    assert reports == []


def test_an_outage_is_reported_once_and_its_end_once() -> None:
    archiver = Archiver()
    archiver.error = "the store cannot be reached"
    thread, reports, archived = started(archiver)
    wait_until(lambda: archiver.steps > 3 or None)
    assert thread.failed
    assert reports == ["the store cannot be reached"]
    assert archived == []
    archiver.error = ""
    wait_until(lambda: archived or None)
    wait_until(lambda: not thread.failed or None)
    thread.close()
    assert reports == ["the store cannot be reached", ""]


def test_pauses_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_thread, "LONGEST_RETRY_S", 0.05)
    archiver = Archiver()
    archiver.error = "refused"
    thread, _, _ = started(archiver)
    wait_until(lambda: archiver.steps > 8 or None)
    assert thread._pause_s == 0.05
    thread.close()


@pytest.mark.req("SEC-13-04")
def test_closing_does_not_wait_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_thread, "CLOSE_S", 0.1)
    archiver = Archiver()
    archiver.open.clear()
    thread, _, _ = started(archiver)
    assert archiver.entered.wait(10)
    began = monotonic()
    thread.close()
    assert monotonic() - began < 5
    archiver.open.set()


#: A server that ends while its archive hangs.
_ENDING = """
from threading import Event
from mqis.runtime import archive_thread

class Hanging:
    entered = Event()
    def step(self, stopped):
        self.entered.set()
        Event().wait()

archive_thread.CLOSE_S = 0.1
thread = archive_thread.ArchiveThread(Hanging(), print, print)
assert Hanging.entered.wait(10)
thread.close()
print("closed", flush=True)
"""


@pytest.mark.req("SEC-13-04")
def test_a_process_ends_while_its_store_hangs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ENDING], capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"closed\n"), done.stderr
