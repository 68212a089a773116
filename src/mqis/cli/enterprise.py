"""What the commands about a whole enterprise share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.login import Login
from mqis.client.servers import ServerAddress
from mqis.services.enterprise.nodes import NodePlace
from mqis.services.enterprise.setup import Administrator, Changing

DEFAULT_RUN = Path("mqis-run")

RunOption = Annotated[
    Path,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        envvar="MQIS_RUN",
        help="Where the enterprise keeps its files.",
    ),
]
ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", show_default=False)]


@contextmanager
def administer(node: NodePlace, who: Administrator) -> Iterator[Changing]:
    """A directory server, asked by an administrator: ``setup.Connect``."""
    from mqis.cli import remote  # noqa: PLC0415 -- who does not set up does not wait for it

    address = ServerAddress(node.address, node.rpc_port)
    login = Login((str(address),), domain=who.domain, name=who.name)
    with remote.connected(login, [address], who.password) as found:
        yield found
