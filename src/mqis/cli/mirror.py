"""``mqis mirror``: keeps a store equal to an Active Directory."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.mirror.following import INTERVAL_S
from mqis.admin.activedirectory.mirror.round import MirrorRound
from mqis.admin.activedirectory.mirror.running import MirrorPlaces, mirror_on, mirror_once
from mqis.cli.ldap_login import LdapLogonOptions
from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    StoreOption,
    claimed,
    opened,
    spread,
    store_url,
)
from mqis.cli.output import print_error, print_json, say
from mqis.cli.store import counts_of
from mqis.config.stores import file_of
from mqis.protocol.activedirectory.mirror.cursor import (
    MirrorCursor,
    position_of,
    read_cursor,
    state_of,
)
from mqis.protocol.activedirectory.mirror.leftout import LeftOut, read_left_out
from mqis.texts import and_more, counted
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

#: Differences, and objects that were left out, that text shows; --json has all.
_MOST_LINES = 20


@spread
def mirror(
    urls: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL...]",
            help="ldaps://DC; of a forest, one of each domain. Not needed with --status.",
            show_default=False,
        ),
    ] = None,
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            metavar="DIRECTORY",
            help="The journal of all changes, for 'mqis pipeline'. Default: the store's name with "
            "-journal behind it.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Bring the store up to date, then end.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Bring the store up to date, compare everything with the directory, mend and tell "
            "what differs, then end. Exit status 1: something differed.",
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option("--status", help="Show how equal a mirror is and what it left out, then end."),
    ] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=0.1,
            help="Ask so often where the server sends no notifications.",
        ),
    ] = INTERVAL_S,
    json: JsonOption = False,
    access: LdapLogonOptions,
) -> None:
    """Mirror an Active Directory into a store: first everything, then each change, with a journal.

    The directory is only read, and an account that may read is enough. Killed at any moment, the
    mirror goes on where it was. If the domain controller is away, it waits and says so.
    """
    place = store_url(store, config)
    if status:
        _show_status(place, json=json)
        return
    if not urls:
        raise typer.BadParameter("name a domain controller: mqis mirror ldaps://DC --store FILE")
    domains = [access.connecting(url) for url in urls]
    directory = _journal_of(place) if journal is None else journal
    with claimed(place, create=True):
        pass  # a store that is new stays if the mirror fails later: it goes on from there
    try:
        with claimed(place) as target:
            places = MirrorPlaces(target, directory)
            if once or compare:
                done = asyncio.run(mirror_once(domains, places, compare=compare))
                _tell(done, json=json, always=True)
                raise typer.Exit(int(bool(done.differences) and compare))
            with suppress(KeyboardInterrupt):
                asyncio.run(_run(domains, places, interval, json=json))
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(2) from None


def _journal_of(place: str) -> Path | None:
    path = file_of(place)
    return None if path is None else path.with_name(f"{path.stem}-journal")


async def _run(
    domains: list[ConnectingOptions], places: MirrorPlaces, interval: float, *, json: bool
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has no signal handlers of a loop
            loop.add_signal_handler(number, stop.set)

    def report(result: MirrorRound | Exception) -> None:
        _tell(result, json=json)

    await mirror_on(domains, places, report, stop, interval_s=interval)


# --- output ---------------------------------------------------------------------------------------


def _tell(result: MirrorRound | Exception, *, json: bool, always: bool = False) -> None:
    if isinstance(result, Exception):
        if json:
            print_json({"waiting": str(result)})
        else:
            say(f"waiting: {result}", "yellow")
        return
    counts = result.counts
    if not (always or result.fresh or counts.written or counts.left_out):
        return
    if json:
        print_json(_as_json(result))
        return
    if result.fresh:
        say(f"compared everything: {result.fresh}")
    done = f"{counts.created} created, {counts.updated} changed, {counts.deleted} deleted"
    say(f"{position_of(result.cursor, ', change')}: {done}", "green")
    if result.differences:
        number = counted(len(result.differences), "difference")
        say(f"{number}, which the store has no more:", "yellow")
        _list(map(str, result.differences))
    if counts.left_out:
        _list(f"left out: {item}" for item in counts.left_out.values())
    if always and result.left_out:
        say(state_of(result.cursor, result.left_out))


def _list(lines: Iterable[str]) -> None:
    """Shows the first lines, and the number of the others."""
    held = list(lines)
    for line in held[:_MOST_LINES]:
        say(line, "yellow")
    if len(held) > _MOST_LINES:
        say(f"{and_more(len(held) - _MOST_LINES)}; --json has all", "yellow")


def _as_json(result: MirrorRound) -> dict[str, object]:
    counts = result.counts
    return {
        **_position(result.cursor, result.left_out),
        "fresh": result.fresh or None,
        "created": counts.created,
        "updated": counts.updated,
        "deleted": counts.deleted,
        "differences": [each.as_json() for each in result.differences],
    }


def _position(cursor: MirrorCursor, left_out: Mapping[Guid, LeftOut]) -> dict[str, object]:
    return {
        "equal": not left_out,
        "server": cursor.server.host,
        "invocation": str(cursor.server.invocation),
        "usn": cursor.server.usn,
        "mode": cursor.mode.value,
        "sees_deletions": cursor.sees_deletions,
        "other_domains": [
            {"server": each.server.host, "usn": each.server.usn} for each in cursor.others
        ],
        "compared": cursor.compared_s or None,
        "differed": cursor.differed,
        "left_out": [item.as_json(guid) for guid, item in sorted(left_out.items())],
    }


def _show_status(place: str, *, json: bool) -> None:
    with opened(place) as found:
        counts = counts_of(found)
        with found.read() as view:
            cursor, left_out = read_cursor(view), read_left_out(view)
    if json:
        print_json({"complete": cursor is not None, "objects": counts}
                   | ({} if cursor is None else _position(cursor, left_out)))  # fmt: skip
    elif cursor is None:
        say("the mirror is not complete yet", "yellow")
    else:
        parts = ", ".join(counted(number, label) for label, number in counts.items() if number)
        say(f"{state_of(cursor, left_out)}: {parts}", "yellow" if left_out else "green")
        _list(f"left out: {item}" for item in left_out.values())
