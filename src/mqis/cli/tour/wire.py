"""The step of the tour over the network: a server, an anonymous client and one with an account.

All run in this process, on loopback, with a copy of the store, so that the store stays as built.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory

from mqis.admin.transfer import export_file, import_file
from mqis.cli.tour.guide import Guide
from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.file import override
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Store
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.authentication.account import Account
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.wire.hresult import name_of
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, ANONYMOUS

_QUEUE = "ams-app1\\tour"
#: The directory servers of the demonstration enterprise, by site.
_SERVERS = {
    "Amsterdam": ["ams-dir1", "ams-dir2"],
    "Berlin": ["ber-dir1", "ber-dir2"],
    "Chicago": ["chi-dir1"],
}
_LABEL = "Made over the wire"
_PROPERTIES: dict[int, PropVariant] = props({PropId.Q_LABEL: _LABEL})


def over_the_wire(guide: Guide, store: Store) -> None:
    guide.step("Over the wire", "a directory server on loopback, with a copy of the store")
    with TemporaryDirectory(prefix="mqis-tour-") as name:
        directory = Path(name)
        _copy(store, directory)
        password = token_urlsafe()
        accounts = AccountsFile(directory / "accounts.toml")
        account = accounts.add("tourist", password, domain="MERIDIAN", groups=[ADMINISTRATORS])
        config = override(
            Config(),
            {
                "server": {"name": "ams-dir1"},
                "store": {"url": f"sqlite:{directory / 'copy.db'}"},
                "rpc": {"listen": "127.0.0.1", "mapper_port": 0},
                "security": {"accounts": str(accounts.path)},
            },
            "the tour",
        )
        asyncio.run(_walk(guide, config, account, password))


def _copy(store: Store, directory: Path) -> None:
    export_file(store, directory / "directory.jsonl")
    copy = open_store(str(directory / "copy.db"), create=True)
    try:
        import_file(copy, directory / "directory.jsonl", restore=True)
    finally:
        copy.close()


async def _walk(guide: Guide, config: Config, account: Account, password: str) -> None:
    async with DirectoryServer(config) as server:
        ready = server.ready
        assert ready.mapper_port is not None
        address = ServerAddress(ready.address, mapper_port=ready.mapper_port)
        await _refused(guide, address)
        initiator = PyspnegoInitiator(LogonCredentials(account.name, account.domain, password))
        credentials = Credentials(initiator, AuthType.SPNEGO, AuthLevel.PRIVACY, address.host)
        async with await DirectoryClient.connect(
            [address], credentials=credentials, gss=initiator
        ) as client:
            guide.confirm_equal(
                f"{account} logs on by NTLM; every call is encrypted, every answer signed",
                await client.server_port(),
                ready.port,
            )
            await _change(guide, client, account)


async def _refused(guide: Guide, address: ServerAddress) -> None:
    """Shows that an anonymous client finds the server and may read, but not write."""
    with _audit_trail() as trail:
        async with await DirectoryClient.connect([address]) as nobody:
            sites = await nobody.known_servers()
            listed = ", ".join(f"{site.site_name} {len(site.servers)}" for site in sites)
            guide.confirm_equal(
                f"the endpoint mapper on port {address.mapper_port} tells a client the port; the "
                f"server tells it the directory servers by site: {listed}",
                {site.site_name: sorted(server.name for server in site.servers) for site in sites},
                _SERVERS,
            )
            code = None
            try:
                await nobody.create(ObjectType.QUEUE, _QUEUE, _PROPERTIES)
            except DirectoryError as error:
                code = error.hresult
    refused = name_of(code or 0)
    guide.confirm_equal(
        f"an anonymous user cannot create a queue: {refused}", refused, "MQ_ERROR_ACCESS_DENIED"
    )
    guide.confirm_equal(
        f"audit trail: {'; '.join(trail)}",
        trail,
        [f"denied: {ANONYMOUS} may not create queue {_QUEUE}"],
    )


async def _change(guide: Guide, client: DirectoryClient, account: Account) -> None:
    made = await client.create(ObjectType.QUEUE, _QUEUE, _PROPERTIES)
    guide.confirm(f"created {_QUEUE} ({made})", made is not None, saw=made, expected="a GUID")
    wanted = [PropId.Q_LABEL, PropId.Q_INSTANCE]
    read = await client.get(ObjectType.QUEUE, wanted, path=_QUEUE.upper())
    guide.confirm_equal(
        f"read back with a valid signature: label {read[PropId.Q_LABEL].value!r}",
        (read[PropId.Q_LABEL].value, read[PropId.Q_INSTANCE].value),
        (_LABEL, made),
    )
    data = await client.get_security(ObjectType.QUEUE, int(SecurityInformation.OWNER), path=_QUEUE)
    owner = SecurityDescriptor.from_bytes(data).owner
    guide.confirm_equal(f"its owner is the user who created it: {owner}", owner, account.sid)
    found = [queue.path async for queue in client.queues(label=_LABEL)]
    guide.confirm_equal(f"found by a lookup of that label: {len(found)} queue", found, [_QUEUE])
    await client.delete(ObjectType.QUEUE, path=_QUEUE)
    code = None
    try:
        await client.get(ObjectType.QUEUE, wanted, path=_QUEUE)
    except DirectoryError as error:
        code = error.hresult
    gone = name_of(code or 0)
    guide.confirm_equal(f"deleted, and gone: {gone}", gone, "MQDS_OBJECT_NOT_FOUND")


@contextmanager
def _audit_trail() -> Iterator[list[str]]:
    """Collects the messages of the server's audit logger during the block."""
    lines: list[str] = []
    logger = logging.getLogger("mqis.audit")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
