"""``mqis account``: the accounts that may log on to a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say
from mqis.runtime.authentication.account import Account
from mqis.server.accounts import DEFAULT_NAME, AccountsFile
from mqis.wire.security.sid import Sid

app = typer.Typer(
    no_args_is_help=True, help="Add, list, change and remove the accounts that may log on."
)

_File = Annotated[Path, typer.Option("--accounts", metavar="FILE", help="The accounts file.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the account.")]
_Domain = Annotated[str, typer.Option(metavar="D", help="Its domain. Default: none.")]


def _sid(text: str) -> Sid:
    try:
        return Sid.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_OwnSid = Annotated[
    Sid | None,
    typer.Option("--sid", parser=_sid, metavar="SID", help="Its SID. Default: a new one."),
]
_Groups = Annotated[
    list[Sid] | None,
    typer.Option(
        "--group",
        parser=_sid,
        metavar="SID",
        help="The SID of a group that it belongs to. May be repeated.",
    ),
]


def _password() -> str:
    """Returns the password: typed twice at a terminal, else the first line of the standard input.

    Never an argument: other users of the computer could see it.
    """
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")


@app.command()
def add(
    name: _Name,
    *,
    domain: _Domain = "",
    group: _Groups = None,
    sid: _OwnSid = None,
    accounts: _File = Path(DEFAULT_NAME),
    json: JsonOption = False,
) -> None:
    """Add an account. The password is asked for, or read from the standard input."""
    file = AccountsFile(accounts)
    account = file.add(name, _password(), domain=domain, sid=sid, groups=group or ())
    _tell("added", account, json=json)


@app.command(name="list")
def list_(
    json: JsonOption = False,
    accounts: _File = Path(DEFAULT_NAME),
) -> None:
    """List the accounts with their SIDs and groups; password hashes are not shown."""
    found = AccountsFile(accounts).accounts()
    if json:
        print_json([_shown(account) for account in found])
        return
    width = max((len(str(account)) for account in found), default=0)
    for account in found:
        groups = " ".join(str(group) for group in sorted(account.groups))
        say(f"{account!s:{width}}  {account.sid}  {groups}".rstrip())


@app.command()
def password(
    name: _Name,
    domain: _Domain = "",
    accounts: _File = Path(DEFAULT_NAME),
    json: JsonOption = False,
) -> None:
    """Change the password of an account, which keeps its SID; its open logons end.

    The password is asked for, or read from the standard input.
    """
    account = AccountsFile(accounts).change(name, domain, password=_password())
    _tell("changed", account, json=json)


@app.command()
def remove(
    name: _Name,
    domain: _Domain = "",
    accounts: _File = Path(DEFAULT_NAME),
    json: JsonOption = False,
) -> None:
    """Remove an account. Its SID is never given to another account."""
    account = AccountsFile(accounts).remove(name, domain)
    _tell("removed", account, json=json)


def _tell(done: str, account: Account, *, json: bool) -> None:
    if json:
        print_json({"done": done, **_shown(account)})
    else:
        say(f"{done} {account} ({account.sid})")


def _shown(account: Account) -> dict[str, object]:
    return {
        "domain": account.domain,
        "name": account.name,
        "sid": str(account.sid),
        "groups": [str(group) for group in sorted(account.groups)],
    }
