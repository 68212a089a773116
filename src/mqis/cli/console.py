"""``mqis console``: an enterprise in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.credentials import MAPPER_PORT
from mqis.cli.login import MapperPortOption, VerifyOption
from mqis.cli.options import JsonOption, OptionalRunOption, opened, refuse_passwords
from mqis.cli.output import print_json_line, print_note, say
from mqis.config.nodes import default_run


def console(
    *,
    run: OptionalRunOption = None,
    store: Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            "-s",
            metavar="STORE",
            help="A store to show; may be given several times. The first --store, --server, "
            "--journal and --monitor are those of one server, and so on.",
            callback=refuse_passwords,
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="HOST[:PORT]",
            help="A directory server to log in to.",
            show_default=False,
        ),
    ] = None,
    journal: Annotated[
        list[Path] | None,
        typer.Option(
            "--journal", metavar="DIRECTORY", help="A journal to show.", show_default=False
        ),
    ] = None,
    monitor: Annotated[
        list[str] | None,
        typer.Option(
            "--monitor",
            metavar="URL",
            help="The monitoring address of a server: http://127.0.0.1:9364",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The configuration of a server: its accounts and administrators apply.",
            show_default=False,
        ),
    ] = None,
    guest: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="WHO",
            help="The rights of visitors who have not logged in: anonymous, administrator (read "
            "everything) or a SID.",
        ),
    ] = "anonymous",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            "-t",
            metavar="DIRECTORY",
            help="The tables of 'mqis pipeline'. Default: 'tables' in the run directory.",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            help="The port; 0 picks a free one. Default: 8180, or another if that is busy.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="A host name that browsers may use, besides the address. May be repeated.",
            show_default=False,
        ),
    ] = None,
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="Allow an address that other computers can reach."),
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The certificate for HTTPS, PEM.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The certificate's private key, PEM.", show_default=False
        ),
    ] = None,
    mapper_port: MapperPortOption = MAPPER_PORT,
    verify: VerifyOption = True,
    json: JsonOption = False,
) -> None:
    """Show an enterprise in the browser: map, replication, directory, journal, pipeline.

    It shows what 'mqis up' runs, a store, or a server. Open the address that it prints. The address
    holds an access token, which is also written to a file that only you can read. Visitors may read
    what anonymous users may; users who log in have the rights of their account. Ctrl-C ends it.
    """
    from mqis.config import logs  # noqa: PLC0415
    from mqis.config.sections import LogSection  # noqa: PLC0415
    from mqis.views.console.server_places import Places  # noqa: PLC0415
    from mqis.views.console.visitor_rights import Guest  # noqa: PLC0415
    from mqis.web.console_settings import PORT, ConsoleSettings  # noqa: PLC0415
    from mqis.web.serving import ServingConsole, serve_console  # noqa: PLC0415

    logs.configure(LogSection())
    if store or server or journal or monitor or config:
        run = None
    elif run is None:
        run = default_run()
    for url in store or ():
        with opened(url):  # one that is not there is told now, and not in the browser
            pass
    places = Places(
        run,
        stores=tuple(store or ()),
        servers=tuple(server or ()),
        journals=tuple(journal or ()),
        monitors=tuple(monitor or ()),
        configs=tuple(config or ()),
        mapper_port=mapper_port,
    )
    if tables is None and run is not None:
        tables = run / "tables"
    settings = ConsoleSettings(
        places,
        tables,
        listen,
        PORT if port is None else port,
        any_port=port is None,
        hosts=tuple(host or ()),
        allow_remote=allow_remote,
        certificate=certificate,
        key=key,
        verify=verify,
        guest=Guest.parse(guest),
    )

    if settings.login_required and not settings.tls:
        text = (
            f"{listen} can be reached from other computers, and there is no --certificate: "
            "passwords and pages cross the network in clear text"
        )
        print_note(text)

    def print_address(opened: ServingConsole) -> None:
        if json:
            file = None if opened.file is None else str(opened.file)
            print_json_line({"url": opened.url, "token_file": file})
        else:
            say(f"console at {opened.url}")

    serve_console(settings, print_address)
