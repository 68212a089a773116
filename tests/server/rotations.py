"""Enterprises of real servers whose keys are rotated with ``mqis key rotate``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqis.config.file import default_toml, override, read
from mqis.config.stores import open_store
from mqis.runtime.node.keyring import KeyRing
from mqis.runtime.node.members import Members
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_ports
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.keyinfo import key_id
from tests.cli.commands import run
from tests.server.enterprises import Site

ROLES = {"pec1": "Delft", "psc2": "Leiden", "bsc3": "Leiden"}


@dataclass
class Rotating:
    """A PEC, the PSC of another site and its backup; each may be stopped and started."""

    site: Site
    monitors: dict[str, int] = field(
        default_factory=lambda: dict(zip(ROLES, free_ports(len(ROLES)), strict=True))
    )
    running: dict[str, tuple[DirectoryServer, AsyncExitStack]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DirectoryServer:
        return self.running[name][0]

    async def start(self, name: str) -> DirectoryServer:
        self._monitored(name)
        stack = AsyncExitStack()
        server = await stack.enter_async_context(self.site.serving(name))
        self.running[name] = (server, stack)
        return server

    async def stop(self, name: str) -> None:
        _, stack = self.running.pop(name)
        await stack.aclose()

    def _monitored(self, name: str) -> None:
        path = self.config(name)
        urls = {n: f"http://127.0.0.1:{port}" for n, port in self.monitors.items()}
        values: dict[str, dict[str, object]] = {
            "monitoring": {
                "enabled": True,
                "port": self.monitors[name],
                "peers": [url for other, url in urls.items() if other != name],
            },
            "replication": {"journal": "journal"},
        }
        path.write_text(default_toml(override(read(path), values, "test")))

    def config(self, name: str) -> Path:
        return self.site.homes[name] / "mqis.toml"

    def ring(self, name: str) -> KeyRing:
        return KeyRing.open(self.site.homes[name] / "signing.key", create=False)

    async def rotate(self, name: str, *options: str, status: int = 0) -> dict[str, Any]:
        """Runs the command, which another process could run as well."""
        named = str(self.config(name))
        arguments = ("key", "rotate", "--config", named, "--json", *options)
        found = await asyncio.to_thread(run, *arguments)
        assert found.exit_code == status, found.output
        content: dict[str, Any] = json.loads(found.stdout)
        return content

    def listed(self, at: str, server: str) -> list[str]:
        """The keys that the directory of one server has of another."""
        with closing(open_store(str(self.site.homes[at] / "d.db"))) as store:
            with store.read() as view:
                machine = view.find(ObjectType.MACHINE, server)
            assert machine is not None
            return [key_id(k).hex()[:16] for k in Members(store, {}).keys_of(machine.id)]


@asynccontextmanager
async def rotating(directory: Path) -> AsyncIterator[Rotating]:
    made = Rotating(Site(directory))
    made.site.found("pec1")
    try:
        pec = await made.start("pec1")
        await made.site.join(pec, "psc2", "psc", "Leiden")
        await made.start("psc2")
        await made.site.join(pec, "bsc3", "bsc", "Leiden", "psc2")
        await made.start("bsc3")
        yield made
    finally:
        for name in list(made.running):
            await made.stop(name)
