"""The tour of a live enterprise of five servers."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from time import monotonic

from mqis.cli.output import cell, table
from mqis.cli.remote import administer
from mqis.cli.tour.console import opened_console, read_console
from mqis.cli.tour.directory import directory_steps
from mqis.cli.tour.file import briefly
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.healing import Episode, healing
from mqis.cli.tour.pipeline import pipeline
from mqis.cli.tour.reading import table_rows
from mqis.cli.tour.routing import routes
from mqis.cli.tour.site import Tour, has
from mqis.cli.tour.slip import UndoneSlip, slip
from mqis.config.errors import NodesError
from mqis.config.file import load
from mqis.config.nodes import ACCOUNTS, FILE, NodePlace
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.control import LOCK
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.launch import Launch, RunningEnterprise
from mqis.enterprise.left_running import recover
from mqis.enterprise.plan import parse_plan
from mqis.enterprise.states import ProcessState
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.node.signer import MachineKey
from mqis.runtime.oletx.application_connection import OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import MapperResolver
from mqis.server.accounts import AccountsFile
from mqis.texts import duration
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, name_of
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.keys import MqdsPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import Sid

_LOOK_S = 0.05


def live(guide: Guide, directory: Path, *, once: bool) -> None:
    """Runs the whole tour in ``directory``; the servers end with it."""
    _make_room(directory)
    logging.getLogger("mqis").setLevel(logging.CRITICAL)  # the steps report what matters
    try:
        asyncio.run(_walk(guide, directory, once=once))
    except asyncio.CancelledError:
        raise MqisError("the tour was interrupted before its last step") from None


def _make_room(directory: Path) -> None:
    """Deletes the files of an earlier tour, and refuses to delete any others."""
    run = directory / "run"
    if holder(run / LOCK) is not None:
        raise NodesError(
            f"{run}: a tour is still running there; end it, or name another --directory"
        )
    if run.exists():
        if not (run / FILE).exists() and any(run.iterdir()):
            raise NodesError(
                f"{run}: this is not the run directory of a tour; name another --directory"
            )
        recover(run)
        shutil.rmtree(run)
    directory.mkdir(parents=True, exist_ok=True)


async def _walk(guide: Guide, directory: Path, *, once: bool) -> None:
    began = monotonic()
    async with _enterprise(guide, directory) as tour, opened_console(guide, tour) as url:
        await directory_steps(guide, tour)
        await hostile(guide, tour)
        mistake = await slip(guide, tour)
        episode = await healing(guide, tour)
        await asyncio.to_thread(_routes, guide, tour)
        await asyncio.to_thread(partners, guide)
        await _pipeline(guide, tour, mistake, episode)
        await asyncio.to_thread(briefly, guide, directory / "enterprise.db")
        took = monotonic() - began
        await read_console(guide, tour, url, took, once=once)
        if not once:
            guide.line("stopping: backup controllers, primary controllers, the PEC", "dim")


@asynccontextmanager
async def _enterprise(guide: Guide, directory: Path) -> AsyncIterator[Tour]:
    """Brings the enterprise up as 'mqis up' does, supervised by this process."""
    plan = parse_plan(tomllib.loads(EXAMPLE))
    guide.step(
        "Five servers", "an enterprise is founded in Amsterdam, four servers join it over RPC"
    )
    messages: list[str] = []
    what = Launch(plan, directory / "run", administer, EXAMPLE, directory)
    async with RunningEnterprise(what, messages.append) as enterprise:
        tour = Tour(enterprise, plan, directory)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _on_signal(tour, task))
        began = monotonic()
        with guide.waiting("servers start and get their directory", len(plan.servers)) as bar:
            await _up(enterprise, bar)
            status = await tour.converged()
        for text in messages:
            guide.line(f"   {text}", "dim")
        _show_servers(guide, tour)
        guide.confirm_equal(
            f"five processes serve after {duration(monotonic() - began)}",
            {child.state for child in enterprise.supervisor.children.values()},
            {ProcessState.READY},
        )
        guide.confirm_equal(
            "they accept only messages that the sender's key has signed",
            {node.name: _signing(node) for node in tour.nodes},
            {node.name: "require" for node in tour.nodes},
        )
        guide.confirm_equal(
            "each has all four partitions, up to the last change",
            ({server.name: len(server.replicas) for server in status.servers}, status.findings),
            ({server.name: 4 for server in plan.servers}, ()),
        )
        yield tour


async def _up(enterprise: RunningEnterprise, bar: Callable[[float], None]) -> None:
    coming = asyncio.create_task(enterprise.bring_up())
    try:
        while not coming.done():
            states = [child.state for child in enterprise.supervisor.children.values()]
            bar(states.count(ProcessState.READY))
            await asyncio.wait({coming}, timeout=_LOOK_S)
        await coming
    finally:
        coming.cancel()


def _on_signal(tour: Tour, task: asyncio.Task[object]) -> Callable[[], None]:
    """Returns the signal handler: it ends the console if that is up, else the tour."""

    def end() -> None:
        if tour.staying:
            tour.ended.set()
        else:
            task.cancel()

    return end


def _signing(node: NodePlace) -> str:
    """What the server's own configuration says of the messages that it accepts."""
    return load(Path(node.config)).replication.signing.value


def _show_servers(guide: Guide, tour: Tour) -> None:
    made = table("server", "role", "site", "address", "RPC", "mapper", "queues", "process")
    for node in tour.nodes:
        made.add_row(
            *map(cell, (node.name, node.role, node.site, node.address)),
            *map(str, (node.rpc_port, node.mapper_port, node.queue_port, node.pid)),
        )
    shown = [row[:3] for row in table_rows(guide.show(made))]
    guide.confirm_equal(
        "the servers are those of the enterprise file, each with an address of its own",
        (sorted(shown), len({node.address for node in tour.nodes})),
        (sorted([s.name, str(s.role), s.site] for s in tour.plan.servers), len(shown)),
    )


def _routes(guide: Guide, tour: Tour) -> None:
    """Explains routes from the copy of a running backup controller."""
    costs = {frozenset(link.sites): link.cost for link in tour.plan.links}
    with closing(open_store(tour.node("ber-dir2").store)) as store, store.read() as view:
        routes(guide, view, "ams-desk1", "C14", costs)


async def _pipeline(guide: Guide, tour: Tour, mistake: UndoneSlip, episode: Episode) -> None:
    status = await tour.converged()
    if not status.converged:
        raise MqisError(f"the replicas do not agree yet, so the audit would fail: {status.summary}")
    await asyncio.to_thread(pipeline, guide, tour, mistake, episode)


# --- The step of the live tour about a user who tries to exceed their rights ----------------------

MACHINE, USER, QUEUE = ObjectType.MACHINE, ObjectType.USER, ObjectType.QUEUE
_SERVER, _DESK, _CLERK, _ADMIN = "ams-dir1", "ams-desk1", "clerk", "admin"
_RELAYED = "C14\\relayed"
_LABEL: dict[int, PropVariant] = props({PropId.Q_LABEL: "relayed"})
#: The shortest bytes that pass as an X.509 certificate.
_CERTIFICATE = bytes.fromhex("300430020500")


async def hostile(guide: Guide, tour: Tour) -> None:
    guide.step(
        "Access denied",
        f"{_CLERK} has an account without rights, and tries to act as a server and as another user",
    )
    sids = _sids(tour)
    before = await _digests(tour)
    async with tour.client(_SERVER, account=_CLERK) as clerk:
        role: dict[int, PropVariant] = props({PropId.QM_SERVICE: int(ServiceBits.BSC)})
        await _refused(guide, f"make {_DESK} a controller", clerk.set(MACHINE, role, path=_DESK))
        key = MqdsPublicKey(MachineKey.generate().public).to_bytes()
        sign = SecurityInformation.SIGN_PUBLIC_KEY
        forged = clerk.set_security(MACHINE, sign, key, path=_SERVER)
        await _refused(guide, f"replace the key of {_SERVER}", forged)
        stolen = clerk.create(USER, None, _registration(sids[_ADMIN]))
        await _refused(guide, f"register a certificate as {_ADMIN}", stolen)
        guide.confirm_equal(
            f"nothing of that is in the directory: its digests at {_SERVER} are as before",
            await _digests(tour),
            before,
        )
        own = await _result(clerk.create(USER, None, _registration(sids[_CLERK])))
        guide.confirm_equal(
            f"{_CLERK} may register a certificate of its own", name_of(own), "MQ_OK"
        )
    async with tour.client(_SERVER, level=AuthLevel.CONNECT) as relayed:
        await _refused(
            guide,
            f"create a queue by a relayed logon of {_ADMIN}, whose calls are not signed",
            relayed.create(QUEUE, _RELAYED, _LABEL),
        )
        guide.confirm_equal("there is no such queue", await has(relayed, QUEUE, _RELAYED), False)


async def _digests(tour: Tour) -> dict[str, str]:
    """The digest of each partition at the server that is attacked."""
    return {part.name: part.digest for part in (await tour.status(_SERVER)).partitions}


def _sids(tour: Tour) -> dict[str, Sid]:
    """The SID of each account, from the file that all servers share."""
    return {account.name: account.sid for account in AccountsFile(tour.run / ACCOUNTS).accounts()}


def _registration(sid: Sid) -> dict[int, PropVariant]:
    digest = Guid(digest_of(_CERTIFICATE))
    return props(
        {
            PropId.U_SID: sid.to_bytes(),
            PropId.U_SIGN_CERT: _CERTIFICATE,
            PropId.U_DIGEST: (digest,),
        }
    )


async def _refused(guide: Guide, attempt: str, call: Awaitable[object]) -> None:
    code = await _result(call)
    told = name_of(code)
    guide.confirm_equal(f"attempt to {attempt}: {told}", told, "MQ_ERROR_ACCESS_DENIED")


async def _result(call: Awaitable[object]) -> int:
    try:
        await call
    except DirectoryError as error:
        return error.hresult
    return HResult.MQ_OK


# --- The step of the tour about OleTx: two partners, one session, many connections ----------------

_ALPHA = NameObject.parse("ALPHA/b51996ef-c434-4f79-a288-56efd302fc8e")
_BETA = NameObject.parse("BETA/a3afb37b-f64a-4e6c-9017-f6a96ba6f166")
_TYPE, _PING, _PONG = 0x101, 0x2001, 0x2002
_CONNECTIONS, _MESSAGES = 20, 50


def partners(guide: Guide) -> None:
    guide.step("OleTx", "two partners on loopback exchange messages over one session")
    answers = asyncio.run(_exchange())
    wanted = [[_body(c, m) for m in range(_MESSAGES)] for c in range(_CONNECTIONS)]
    amount = f"{_CONNECTIONS} connections, {_MESSAGES} messages on each"
    missing = sum(got != want for got, want in zip(answers, wanted, strict=True))
    guide.confirm(
        f"{amount}: every answer came, in order",
        answers == wanted,
        saw=f"{missing} connections with other answers",
        expected="none",
    )


async def _exchange() -> list[list[bytes]]:
    hosts = MapperResolver()
    async with (
        OleTxEndpoint(_ALPHA, mapper_port=0, resolver=hosts) as alpha,
        OleTxEndpoint(_BETA, mapper_port=0, resolver=hosts) as beta,
    ):
        for name, endpoint in (("ALPHA", alpha), ("BETA", beta)):
            assert endpoint.mapper_port is not None
            hosts.add(name, "127.0.0.1", endpoint.mapper_port)
        beta.accept(_TYPE, _echo)
        return await asyncio.gather(*(_converse(alpha, number) for number in range(_CONNECTIONS)))


async def _echo(connection: OleTxConnection) -> None:
    async for message in connection:
        await connection.send(_PONG, message.body)


async def _converse(alpha: OleTxEndpoint, number: int) -> list[bytes]:
    async with await alpha.connect(_BETA, connection_type=_TYPE) as connection:
        for index in range(_MESSAGES):
            await connection.send(_PING, _body(number, index))
        answers: list[bytes] = []
        async for message in connection:
            answers.append(bytes(message.body))
            if len(answers) == _MESSAGES:
                break
        return answers


def _body(connection: int, message: int) -> bytes:
    return f"{connection}:{message}".encode()
