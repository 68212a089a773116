"""``mqis serve``: runs one directory server until a signal ends it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import ConfigOption, StoreOption, configuration
from mqis.cli.output import plain, print_json_line
from mqis.config.checks import as_host
from mqis.config.file import DEFAULT_NAME, override
from mqis.config.sections import Config, LogFormat, LogLevel
from mqis.server.directory_server import Ready
from mqis.server.serve import serve as run_server
from mqis.texts import host_port


def serve(
    *,
    config: ConfigOption = None,
    store: StoreOption = None,
    name: Annotated[
        str | None, typer.Option(help="Its name (server.name).", metavar="NAME", show_default=False)
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="Its site (server.site).", metavar="NAME", show_default=False)
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            help="The address to listen at (rpc.listen).", metavar="ADDRESS", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="The port for calls (rpc.port); 0: a free one.", metavar="N", show_default=False
        ),
    ] = None,
    mapper_port: Annotated[
        int | None,
        typer.Option(
            help="The endpoint mapper's port (rpc.mapper_port); 0: a free one.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    accounts: Annotated[
        Path | None,
        typer.Option(
            help="The accounts file (security.accounts).", metavar="FILE", show_default=False
        ),
    ] = None,
    discovery: Annotated[
        str | None,
        typer.Option(
            help="Answer clients that look for a server by broadcast (discovery.enabled, .listen "
            "and .port).",
            metavar="ADDRESS[:PORT]",
            show_default=False,
        ),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            help="Tell status, metrics and health over HTTP (monitoring.enabled, .listen and "
            ".port).",
            metavar="ADDRESS[:PORT]",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel | None, typer.Option(help="The log level (log.level).", show_default=False)
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="The log format (log.format).", show_default=False)
    ] = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="The store was restored from a backup: compare it with the other servers before "
            "accepting changes. Needed once.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Write the ready line as JSON.")] = False,
) -> None:
    """Serve a directory over RPC, with an endpoint mapper beside it.

    With server.role it also replicates with the other servers of its enterprise.

    A line on the standard output tells when and where the server is ready; logs go to the standard
    error. Options override keys of the configuration. SIGHUP rereads it, SIGTERM ends the server.
    """
    given: dict[str, dict[str, object]] = {
        "server": {"name": name, "site": site},
        "store": {"url": store},
        "rpc": {"listen": listen, "port": port, "mapper_port": mapper_port},
        "security": {"accounts": None if accounts is None else str(accounts.absolute())},
        "discovery": _endpoint("--discovery", discovery),
        "monitoring": _endpoint("--monitor", monitor),
        "log": {"level": log_level, "format": log_format},
    }
    values = {
        section: {key: value for key, value in keys.items() if value is not None}
        for section, keys in given.items()
    }

    def read() -> Config:
        return override(configuration(config, needed=store is None), values, "command line")

    # A store that an option names is not the one that a restored configuration has.
    file = (Path(DEFAULT_NAME) if config is None else config).absolute() if store is None else None
    run_server(
        read,
        lambda ready: _print_ready(ready, json=json),
        restored=restored,
        config_file=file,
    )


def _endpoint(option: str, text: str | None) -> dict[str, object]:
    """The keys of a section for an endpoint that an option turns on."""
    if text is None:
        return {}
    try:
        address, port = as_host(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    return {"enabled": True, "listen": address, "port": port}


def _print_ready(ready: Ready, *, json: bool) -> None:
    """Prints the ready line, for which scripts can wait."""
    if json:
        print_json_line({"event": "ready", **asdict(ready)})
        return
    mapper = "no endpoint mapper"
    if ready.mapper_port is not None:
        mapper = f"endpoint mapper {host_port(ready.address, ready.mapper_port)}"
    at = host_port(ready.address, ready.port)
    text = f"ready: {ready.enterprise}, site {ready.site}, {at}, {mapper}"
    if ready.discovery_port is not None:
        text += f", discovery UDP {ready.discovery_port}"
    if ready.queue_port is not None:
        owned = ", ".join(ready.partitions) or "nothing"
        text += f", {ready.role} of {owned}, queue manager TCP {ready.queue_port}"
    if ready.monitoring_port is not None:
        text += f", monitoring TCP {ready.monitoring_port}"
    print(plain(text), flush=True)
