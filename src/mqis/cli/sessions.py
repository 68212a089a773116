"""``mqis sessions``: lists who is connected to a server, and ends a connection."""

from __future__ import annotations

from typing import Annotated

import typer

from mqis.cli.login import LogonOptions, connected
from mqis.cli.options import JsonOption, spread
from mqis.cli.output import cell, console, print_json, say, table
from mqis.protocol.sessions import SessionEntry, SessionsReply
from mqis.texts import and_more, iso_moment, moment


@spread
def sessions(
    *,
    end: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="ID",
            help="End this session. Remove the account first, or its user logs on again.",
            show_default=False,
        ),
    ] = None,
    access: LogonOptions,
    json: JsonOption = False,
) -> None:
    """List who is connected to a server: address, account, level, since when, calls, handles.

    For administrators. Connections of users come first, then those without a logon.
    """
    with connected(access.login()) as remote:
        found = remote.sessions() if end is None else remote.end_session(end)
    if json:
        print_json({"total": found.total, "sessions": [_as_json(one) for one in found.sessions]})
        return
    if end is not None:
        say(f"session {end} is ended", "green")
        return
    _show(found)


def _show(found: SessionsReply) -> None:
    made = table("id", "address", "account", "level", "since", "calls", "handles", "")
    for one in found.sessions:
        texts = (str(one.id), one.address, one.account, one.level, moment(one.since_us / 1e6))
        numbers = (f"{one.calls:,}", f"{one.handles:,}")
        made.add_row(*(cell(text) for text in texts), *numbers, "this one" if one.own else "")
    console().print(made)
    left_out = found.total - len(found.sessions)
    if left_out:
        say(and_more(left_out, "session"), "dim")


def _as_json(one: SessionEntry) -> dict[str, object]:
    return {
        "id": one.id,
        "address": one.address,
        "account": one.account,
        "level": one.level,
        "since": iso_moment(one.since_us),
        "calls": one.calls,
        "handles": one.handles,
        "own": one.own,
    }
