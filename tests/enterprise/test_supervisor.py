"""Processes that are watched: these only say that they are ready, and then do what a test wants."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, load_nodes, save_nodes
from mqis.config.processlocks import ProcessLock, end, holder, send
from mqis.enterprise.control import ControlServer, ask
from mqis.enterprise.left_running import recover
from mqis.enterprise.states import ProcessState, Supervised, load_states
from mqis.enterprise.supervisor import Patience, Supervisor, lock_of
from tests.waiting import DEADLINE_S, until

READY = 'echo \'{"event": "ready"}\''
SERVES = f"{READY}; exec sleep 1000"
#: Ends as soon as it is told to.
QUICK = Patience(quick_s=60.0, pause_s=0.01, longest_s=0.04, give_up_after=4, grace_s=DEADLINE_S)


def place(home: Path, name: str, role: str = "psc") -> NodePlace:
    home.mkdir(exist_ok=True)
    return NodePlace(
        *(name, role, "Delft", "127.0.0.1"),
        *(1, 2, 3, 4, 5),
        *(str(home), str(home / "mqis.toml"), str(home / "d.db"), "", str(home / "log")),
    )


class Case:
    """A supervisor whose servers run a shell script; ``told`` is what people hear."""

    def __init__(self, run: Path, script: str, roles: dict[str, str] | None = None) -> None:
        self.run = run
        self.told: list[str] = []
        places = [place(run / name, name, role) for name, role in (roles or {"a": "psc"}).items()]
        self.supervisor = Supervisor(
            run,
            Nodes("Acme", tuple(places)),
            self.told.append,
            patience=QUICK,
            command=("/bin/sh", "-c", script),
        )

    def state(self, name: str = "a") -> ProcessState:
        return self.supervisor.children[name].state

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(holds)


def test_a_server_is_ready_when_it_says_so_and_ends_when_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, f"sleep 0.2; {SERVES}")
        case.supervisor.start("a")
        assert case.state() is ProcessState.STARTING
        await case.supervisor.ready(["A"])
        pid = load_nodes(tmp_path).named("a").pid
        assert pid is not None
        assert holder(lock_of(load_nodes(tmp_path).named("a"))) == pid
        await case.supervisor.stop("a")
        assert case.state() is ProcessState.STOPPED
        assert load_nodes(tmp_path).named("a").pid is None
        assert holder(tmp_path / "a" / "lock") is None
        await case.supervisor.close()

    asyncio.run(scenario())


def test_one_that_is_killed_comes_back_at_once_however_often(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, SERVES)
        case.supervisor.start("a")
        for number in range(QUICK.give_up_after + 1):
            await case.supervisor.ready(["a"])
            before = load_nodes(tmp_path).named("a")
            assert before.restarts == number
            assert await case.supervisor.kill("a") == before.pid
            await case.until(lambda: case.state() is ProcessState.READY)
            assert load_nodes(tmp_path).named("a").pid != before.pid
        await case.supervisor.close()

    asyncio.run(scenario())


def test_one_that_is_killed_to_stay_down_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, SERVES)
        case.supervisor.start("a")
        await case.supervisor.ready(["a"])
        await case.supervisor.kill("a", stay=True)
        assert case.state() is ProcessState.STOPPED
        with pytest.raises(NodesError, match="this server is not running, it is stopped"):
            await case.supervisor.kill("a")
        case.supervisor.start("a")
        await case.supervisor.ready(["a"])
        await case.supervisor.close()

    asyncio.run(scenario())


def test_one_that_keeps_dying_is_given_up_loudly_and_can_be_started_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, "echo 'no such store' >&2; exit 3")
        case.supervisor.start("a")
        with pytest.raises(NodesError, match="a did not start: status 3: no such store; see"):
            await case.supervisor.ready(["a"])
        assert case.state() is ProcessState.FAILED
        assert len((tmp_path / "a" / "log").read_text().splitlines()) == QUICK.give_up_after
        assert "4 times in a row soon after its start and is given up: no such" in case.told[-1]
        states = load_states(tmp_path)
        assert states is not None
        known = states.servers["a"]
        assert known == Supervised(ProcessState.FAILED, known.since, "status 3: no such store")
        case.supervisor.start("a")
        await case.until(lambda: case.state() is ProcessState.FAILED)
        await case.supervisor.close()

    asyncio.run(scenario())


def test_pauses_double_up_to_the_longest() -> None:
    patience = Patience(pause_s=0.5, longest_s=3.0)
    assert [patience.pause(n) for n in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_the_end_is_in_order(tmp_path: Path) -> None:
    """Each server writes when it ends; backups first, the PEC last."""
    script = (
        f"trap 'echo $(basename $PWD) >> ../order; exit 0' TERM; {READY}; "
        "while :; do sleep 0.05; done"
    )

    async def scenario() -> None:
        roles = {"p": "pec", "s": "psc", "b": "bsc"}
        case = Case(tmp_path, script, roles)
        for name in roles:
            case.supervisor.start(name)
        await case.supervisor.ready(roles)
        await case.supervisor.close()

    asyncio.run(scenario())
    assert (tmp_path / "order").read_text().split() == ["b", "s", "p"]
    assert load_nodes(tmp_path).supervisor is None


def test_haste_does_not_wait_for_one_that_does_not_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, f"trap '' TERM; {READY}; while :; do sleep 0.05; done")
        case.supervisor.start("a")
        await case.supervisor.ready(["a"])
        closing = asyncio.create_task(case.supervisor.close())
        await case.until(lambda: case.state() is ProcessState.STOPPING)
        case.supervisor.hasten()
        async with asyncio.timeout(QUICK.grace_s / 2):
            await closing

    asyncio.run(scenario())


async def applied(request: Mapping[str, Any]) -> dict[str, Any]:
    """Stands for what carries out a plan."""
    return {"refused": [str(request["file"]), str(request["remove"])]}


def test_commands_over_the_socket(tmp_path: Path) -> None:
    async def scenario() -> None:
        downs: list[bool] = []
        control = ControlServer(tmp_path, lambda: downs.append(True), applied)
        await control.open()
        assert control.path.stat().st_mode & 0o077 == 0
        lock = ProcessLock(tmp_path / "lock")
        assert lock.take()
        case = Case(tmp_path, SERVES)
        case.supervisor._control = str(control.path)
        control.supervisor = case.supervisor
        case.supervisor.start("a")
        await case.supervisor.ready(["a"])

        async def asked(what: str, server: str = "a", **more: object) -> object:
            return await asyncio.to_thread(lambda: ask(tmp_path, what, server, **more))

        pid = case.supervisor.child("a").place.pid
        assert await asked("kill", stay=True) == {"ok": True, "pid": pid}
        answer = await asked("start")
        assert answer == {"ok": True, "pid": case.supervisor.child("a").place.pid}
        await asked("stop")
        assert case.state() is ProcessState.STOPPED
        with pytest.raises(NodesError, match="b: no such server; there are a"):
            await asked("stop", "b")
        with pytest.raises(NodesError, match="not understood: explode"):
            await asked("explode")
        done = await asked("apply", file="/x/plan.toml", remove=True)
        assert done == {"ok": True, "refused": ["/x/plan.toml", "True"]}
        await asked("down", "")
        assert downs == [True]
        lock.let_go()
        with pytest.raises(NodesError, match="no enterprise is running there"):
            await asked("stop")
        await case.supervisor.close()
        await control.close()

    asyncio.run(scenario())


def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    run = tmp_path / ("x" * 100)
    run.mkdir()

    async def scenario() -> None:
        control = ControlServer(run, lambda: None, applied)
        await control.open()
        elsewhere = control.path.parent
        assert elsewhere != run
        assert elsewhere.stat().st_mode & 0o077 == 0
        await control.close()
        assert not elsewhere.exists()

    asyncio.run(scenario())


def test_a_change_of_mind_while_it_starts(tmp_path: Path) -> None:
    async def scenario() -> None:
        case = Case(tmp_path, SERVES)
        case.supervisor.start("a")
        await asyncio.sleep(0)  # its process is being made
        await case.supervisor.stop("a")
        assert case.state() is ProcessState.STOPPED
        assert holder(tmp_path / "a" / "lock") is None
        await case.supervisor.close()
        with pytest.raises(NodesError, match="the enterprise is being stopped"):
            case.supervisor.start("a")

    asyncio.run(scenario())


# --- who is whose ---------------------------------------------------------------------------------


def test_a_number_without_a_lock_is_nobody(tmp_path: Path) -> None:
    """A process that has the number by now is not touched."""
    path = tmp_path / "lock"
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        path.write_text(f"{stranger.pid}\n")
        assert holder(path) is None
        assert not send(path, signal.SIGKILL)
        assert not end(path, 1.0)
        assert stranger.poll() is None
        stranger.kill()


def test_a_lock_is_had_once(tmp_path: Path) -> None:
    first, second = ProcessLock(tmp_path / "lock"), ProcessLock(tmp_path / "lock")
    assert first.take()
    first.name(os.getpid())
    assert not second.take()
    assert holder(tmp_path / "lock") == os.getpid()
    first.let_go()
    assert second.take()
    second.let_go()


def test_servers_that_outlived_their_supervisor_are_ended(tmp_path: Path) -> None:
    home = tmp_path / "a"
    node = place(home, "a")
    lock = ProcessLock(home / "lock")
    assert lock.take()
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_DFL); time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", stubborn], pass_fds=(lock.fd,)) as orphan:
        lock.name(orphan.pid)
        lock.let_go()
        save_nodes(tmp_path, Nodes("Acme", (node,), supervisor=1))
        assert recover(tmp_path) == [
            f"a: process {orphan.pid} outlived its supervisor and was ended"
        ]
        assert orphan.wait(DEADLINE_S) == -signal.SIGTERM
    assert recover(tmp_path) == []
