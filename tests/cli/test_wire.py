"""The commands that ask a directory server, each over a real socket."""

from __future__ import annotations

import json
import socket
from base64 import b64decode
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mqis.cli.credentials import split_user
from mqis.client.servers import NoServerError
from mqis.protocol.errors import DirectoryError
from mqis.server.accounts import AccountsFile
from mqis.views.presentation.properties import PropertyError
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from tests.cli.commands import process, run
from tests.cli.running import ALICE, BOB, CONFIG, PASSWORDS, Running, prepare, serving


@pytest.fixture(autouse=True)
def _no_login_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQIS_USER", raising=False)
    monkeypatch.delenv("MQIS_PASSWORD_FILE", raising=False)


@pytest.fixture(scope="module")
def server(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("server")
    prepare(directory, demo_store)
    with serving(directory, "--json") as running:
        yield running


def asked(server: Running, *arguments: str, user: str | None = None) -> Result:
    """A command, by way of the endpoint mapper; its password on stdin."""
    login = () if user is None else ("--user", user)
    stdin = PASSWORDS[user] if user is not None else None
    return run(*arguments, *server.through_mapper, *login, stdin=stdin)


def done(server: Running, *arguments: str, user: str | None = ALICE) -> str:
    result = asked(server, *arguments, user=user)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def told(server: Running, *arguments: str, user: str | None = ALICE) -> Any:
    return json.loads(done(server, *arguments, "--json", user=user))


def refused(result: Result) -> int:
    assert isinstance(result.exception, DirectoryError), (result.output, result.exception)
    return result.exception.hresult


# --- get and lookup: the same as from a store -----------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("queue", "AMS-app1\\payments"),
        ("machine", "ams-dir1"),
        ("site", "Berlin"),
        ("network", "Mainframe"),
        ("enterprise", "Meridian"),
    ],
)
def test_get_tells_what_the_store_tells(
    server: Running, demo_store: Path, kind: str, name: str
) -> None:
    remote = told(server, "get", kind, name)
    local = json.loads(run("get", kind, name, "--json", "--store", demo_store).stdout)
    # What a client cannot read of an object: permissions and a key have calls of their own.
    kept_back = {"security", "psc_signpk"}
    stored = {k: v for k, v in local["properties"].items() if k not in kept_back}
    assert {k: v for k, v in remote["properties"].items() if k in stored} == stored
    assert (remote["id"], remote["path"]) == (local["id"], local["path"])
    assert remote["seq"] is None


def test_get_for_people(server: Running) -> None:
    text = done(server, "get", "machine", "ams-dir1")
    values = {line.split()[0]: line.split(None, 1)[1:] for line in text.splitlines()}
    assert values["site_ids"][0].strip() == "Amsterdam"
    assert values["service"][0].strip() == "routing, PEC"
    assert values["address"][0].strip() == "IP 10.1.0.10"


def test_get_by_identifier_and_chosen_properties(server: Running) -> None:
    """A property without a value does not hide the others."""
    (row,) = told(server, "lookup", "machine", "--where", "path=ber-dir1")
    got = told(
        server,
        *("get", "machine", row["id"], "--prop", "os", "--prop", "owner_sid", "--prop", "site_id"),
    )
    assert got["path"] == "ber-dir1"
    assert list(got["properties"]) == ["os", "owner_sid", "site_id"]
    assert got["properties"]["os"] == 0x500
    assert got["properties"]["owner_sid"] is None


def test_get_a_property_that_clients_do_not_read(server: Running) -> None:
    result = asked(server, "get", "queue", "ams-app1\\orders", "--prop", "security")
    assert refused(result) == HResult.MQ_ERROR_ILLEGAL_PROPID


@pytest.mark.parametrize(
    ("kind", "options", "found"),
    [
        ("queue", ["--where", "label=audit TRAIL"], 6),
        ("queue", ["--where", "transaction=yes", "--where", "qmid=ams-app1"], 2),
        ("machine", ["--where", "site_id=Berlin"], 6),
        ("link", ["--where", "cost>=20"], 2),
        ("site", [], 3),
        ("network", [], 3),
        ("user", [], 5),
        ("enterprise", [], 1),
    ],
)
def test_lookup_tells_what_the_store_tells(
    server: Running, demo_store: Path, kind: str, options: list[str], found: int
) -> None:
    remote = told(server, "lookup", kind, *options)
    local = json.loads(run("lookup", kind, *options, "--json", "--store", demo_store).stdout)
    assert len(remote) == found
    assert remote == local


def test_lookup_for_people(server: Running, demo_store: Path) -> None:
    options = (
        "lookup",
        "queue",
        "--columns",
        "label,qmid",
        "--sort",
        "-label,path",
        "--limit",
        "8",
    )
    text = done(server, *options)
    assert text == run(*options, "--store", demo_store).stdout
    assert text.splitlines()[-1] == "8 of 60 queues"


def test_lookups_that_a_server_refuses(server: Running) -> None:
    assert refused(asked(server, "lookup", "queue", "--columns", "seq")) == (
        HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS
    )
    error = asked(server, "lookup", "machine", "--where", "site_id=Atlantis", user=ALICE).exception
    assert isinstance(error, PropertyError)
    assert "nor the name of a site" in str(error)


# --- changes --------------------------------------------------------------------------------------


def test_create_set_and_delete_a_queue(server: Running) -> None:
    path = "ams-app1\\wire"
    made = told(server, "create", "queue", path, "label=Over the wire", "transaction=yes")
    assert made["path"] == path
    assert Guid.parse(made["id"])
    got = told(server, "get", "queue", made["id"])["properties"]
    assert (got["label"], got["transaction"], got["quota"]) == ("Over the wire", 1, 0xFFFFFFFF)
    assert done(server, "set", "queue", path, "label=Changed", "quota=100") == (
        f"changed queue {path}\n"
    )
    got = told(server, "get", "queue", path, "--prop", "label", "--prop", "quota")["properties"]
    assert got == {"label": "Changed", "quota": 100}
    changed = told(server, "set", "queue", path, "label=Changed", "quota=100")
    assert changed == {"type": "queue", "name": path, "changed": ["label", "quota"]}
    assert done(server, "delete", "queue", path, "--yes") == f"deleted queue {path}\n"
    assert refused(asked(server, "get", "queue", path)) == HResult.MQDS_OBJECT_NOT_FOUND


def test_create_without_properties_and_with_permissions(server: Running) -> None:
    text = done(server, "create", "queue", "ams-app1\\bare", "--security", "D:(A;;GA;;;AU)")
    assert text.startswith("created queue ams-app1\\bare (")
    shown = told(server, "security", "queue", "ams-app1\\bare", "--part", "dacl")
    assert shown["sddl"] == "D:(A;;0xf003f;;;AU)"


def test_create_a_site_a_machine_and_a_link(server: Running) -> None:
    """Names stand for the GUIDs that the properties hold."""
    site = told(server, "create", "site", "Delft", "psc=delft1")
    machine = told(server, "create", "machine", "delft1", "site_id=Delft", "os=Windows server")
    got = told(server, "get", "machine", machine["id"], "--prop", "site_ids")
    assert got["properties"]["site_ids"] == [site["id"]]
    link = told(server, "create", "link", "neighbor1=Delft", "neighbor2=Berlin", "actual_cost=7")
    assert link["path"] is None
    (row,) = told(server, "lookup", "link", "--where", "neighbor1=Delft")
    assert (row["id"], row["cost"]) == (link["id"], 7)


def test_how_to_name_a_link_is_told(server: Running, demo_store: Path) -> None:
    command = "lookup", "link", "--columns", "id,neighbor1,neighbor2"
    advice = f"name it by its GUID, which 'mqis {' '.join(command)}' shows"
    for words in (("set", "link", "Amsterdam - Berlin", "cost=77"), ("get", "link", "x")):
        result = asked(server, *words, user=ALICE)
        assert f"a link has no path name; {advice}" in str(result.exception)
    stored = run("get", "link", "Amsterdam - Berlin", "--store", demo_store)
    assert advice in str(stored.exception)
    (row,) = told(server, *command, "--where", "neighbor1=Amsterdam", "--where", "neighbor2=Berlin")
    done(server, "set", "link", row["id"], "actual_cost=77")
    (row,) = told(server, "lookup", "link", "--where", "actual_cost=77")
    assert row["cost"] == 77
    done(server, "set", "link", row["id"], "actual_cost=10")


def test_a_certificate_from_a_file(server: Running, tmp_path: Path) -> None:
    certificate = bytes.fromhex("30053003020101")
    (tmp_path / "c.der").write_bytes(certificate)
    digest = Guid(md5(certificate, usedforsecurity=False).digest())
    made = told(
        server,
        *("create", "user", "sid=S-1-5-21-9-9-9-1", f"sign_cert=@{tmp_path / 'c.der'}"),
        f"digest={digest}",
    )
    got = told(server, "get", "user", made["id"], "--prop", "sign_cert")
    assert certificate in b64decode(got["properties"]["sign_cert"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("create", "queue", "ams-app1\\q", "label"),
            "'label' is not an assignment: write property=value",
        ),
        (("create", "queue", "ams-app1\\q", "lable=x"), "a queue has no property 'lable'; did you"),
        (("set", "queue", "ams-app1\\orders", "label=x", "108=y"), "label is set twice"),
        (("set", "queue", "ams-app1\\orders", "quota=x"), "quota: 'x' is no value of VT_UI4"),
        (
            ("create", "user", "sign_cert=@/nowhere"),
            "sign_cert: '@/nowhere' is no value of VT_BLOB",
        ),
        (
            ("create", "queue", "ams-app1\\q", "--security", "D:x"),
            "'D:x' is not a security descriptor in SDDL: ",
        ),
        (
            ("security", "queue", "ams-app1\\orders", "--set", "x"),
            "'x' is not a security descriptor in SDDL: ",
        ),
        (
            ("security", "queue", "ams-app1\\orders", "--set", "O:BA", "--part", "owner,dacl"),
            "the descriptor to set has no dacl",
        ),
    ],
)
def test_changes_that_make_no_sense(
    server: Running, arguments: tuple[str, ...], message: str
) -> None:
    error = asked(server, *arguments, user=ALICE).exception
    assert isinstance(error, PropertyError)
    assert str(error).startswith(message)


# --- permissions ----------------------------------------------------------------------------------


def test_permissions_for_people(server: Running) -> None:
    text = done(server, "security", "queue", "ams-app1\\payments")
    assert text.splitlines()[:4] == [
        "queue ams-app1\\payments",
        "sddl   O:BAG:BAD:P(A;;GA;;;BA)(A;;0x20026;;;AU)",
        "owner  Administrators (S-1-5-32-544)",
        "group  Administrators (S-1-5-32-544)",
    ]
    flowing = " ".join(text.split())
    assert "dacl Administrators (S-1-5-32-544) allowed full control dacl" in flowing
    assert "Authenticated users (S-1-5-11) allowed peek_message, write_message, get_" in flowing


def test_permissions_are_set(server: Running) -> None:
    path = "ber-app1\\orders"
    sddl = "D:(D;;SD;;;AN)(A;;0x20020;;;WD)(A;CI;0x8f003f;;;BA)"
    shown = told(server, "security", "queue", path, "--set", sddl)
    assert shown["sddl"] == sddl
    assert [(e["who"], e["effect"], e["rights"], e["flags"]) for e in shown["entries"]] == [
        ("Anonymous (S-1-5-7)", "denied", ["delete_queue"], []),
        (
            "Everyone (S-1-1-0)",
            "allowed",
            ["get_queue_properties", "get_queue_permissions"],
            [],
        ),
        (
            "Administrators (S-1-5-32-544)",
            "allowed",
            ["full control", "0x800000"],
            ["container_inherit"],
        ),
    ]
    again = told(server, "security", "queue", path)
    assert again["entries"] == shown["entries"]
    owner = told(server, "security", "queue", path, "--set", "O:SYG:SY", "--part", "owner")
    assert (owner["owner"], owner["group"]) == ("S-1-5-18", None)


def test_a_list_that_lets_everybody_or_nobody_in(server: Running) -> None:
    path = "chi-app1\\orders"
    everybody = done(server, "security", "queue", path, "--set", "D:NO_ACCESS_CONTROL")
    assert "everybody may do everything" in everybody
    nobody = done(server, "security", "queue", path, "--set", "D:")
    assert "nobody may do anything" in nobody


# --- servers, and how they are found --------------------------------------------------------------


@pytest.mark.req("MQDS-1.5-02")
def test_the_servers_of_every_site(server: Running) -> None:
    """The authority of a site first, then its backups; sites in the order of their names."""
    assert told(server, "servers", user=None)[:3] == [
        {"site": "Amsterdam", "servers": ["ams-dir1", "ams-dir2"]},
        {"site": "Berlin", "servers": ["ber-dir1", "ber-dir2"]},
        {"site": "Chicago", "servers": ["chi-dir1"]},
    ]
    assert "Berlin      ber-dir1, ber-dir2" in done(server, "servers")


def test_a_port_that_is_known_needs_no_mapper(server: Running) -> None:
    assert run("servers", "--server", server.address, "--mapper-port", "1").exit_code == 0


def test_the_next_server_is_tried(server: Running) -> None:
    """Neither a computer that is not there nor one that is silent ends it."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"127.0.0.1:{closed.getsockname()[1]}"
    options = ("--server", f"host.invalid:1,{dead}", "--server", server.address)
    result = run("lookup", "site", *options, "--user", ALICE, stdin=PASSWORDS[ALICE])
    assert result.exit_code == 0, result.exception
    assert "Chicago" in result.stdout


def test_no_server_answers(server: Running) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"127.0.0.1:{closed.getsockname()[1]}"
    done = process("servers", "--server", f"host.invalid:1,{dead}")
    assert done.returncode == 1
    text = done.stderr.decode()
    assert text.startswith("mqis: no directory server answers; host.invalid:1: ")
    assert text.endswith(f"; {dead}: Connection refused\n")
    assert text.count("\n") == 1
    for address in ("host.invalid", dead):
        assert text.count(address) == 1


def test_a_mapper_that_is_none(server: Running) -> None:
    """The port of the directory is not one of an endpoint mapper."""
    options = ("--server", "127.0.0.1", "--mapper-port", str(server.ready["port"]))
    assert isinstance(run("servers", *options).exception, NoServerError)


# --- who asks -------------------------------------------------------------------------------------


@pytest.mark.req("MQDS-2.1-06", "MQDS-2.1-07", "MQDS-2.1-08")
def test_refusals_name_the_code_and_are_audited(server: Running) -> None:
    """Everybody may connect; each method asks who calls."""
    for user in (None, BOB):
        path = f"ams-app1\\of-{'nobody' if user is None else 'bob'}"
        assert asked(server, "get", "queue", "ams-app1\\orders", user=user).exit_code == 0
        result = asked(server, "create", "queue", path, user=user)
        assert refused(result) == HResult.MQ_ERROR_ACCESS_DENIED
        assert "(MQ_ERROR_ACCESS_DENIED: The caller's account lacks" in str(result.exception)
        server.wait_for(f"may not create queue {path}")
    bob = AccountsFile(server.directory / "accounts.toml").find("LAB", "bob")
    assert bob is not None
    assert f"denied: {bob.sid} may not create queue ams-app1\\of-bob" in server.log


def test_a_wrong_password(server: Running) -> None:
    for provider in ("negotiate", "ntlm"):
        result = run(
            *("get", "queue", "ams-app1\\orders", "--user", ALICE, "--auth", provider),
            *server.through_mapper,
            stdin=b"wrong\n",
        )
        assert isinstance(result.exception, MqisError)
        assert "refused the logon of LAB\\alice: check the name and the" in str(result.exception)
        assert str(result.exception).count("127.0.0.1") == 1
    assert server.log.count("refused: LAB\\alice cannot log on: NTLM: unknown account or w") == 2


@pytest.mark.parametrize("level", ["integrity", "privacy"])
@pytest.mark.parametrize("provider", ["negotiate", "ntlm"])
def test_every_level_and_provider(server: Running, level: str, provider: str) -> None:
    options = ("get", "site", "Berlin", "--level", level, "--auth", provider)
    assert asked(server, *options, user=ALICE).exit_code == 0


@pytest.mark.req("SEC-5-01")
@pytest.mark.parametrize("level", ["connect", "packet"])
def test_below_integrity_a_user_is_nobody(server: Running, level: str) -> None:
    """The caller is anonymous: it reads a public queue, but no site that only users may read."""
    for options, code in ((("queue", "ams-app1\\orders"), 0), (("site", "Berlin"), 1)):
        assert asked(server, "get", *options, "--level", level, user=ALICE).exit_code == code


def test_a_new_account_counts_at_once(server: Running) -> None:
    AccountsFile(server.directory / "accounts.toml").add("carol", "pw", domain="LAB")
    result = run(
        *("get", "site", "Berlin", "--user", "carol", *server.through_mapper), stdin=b"pw\r\n"
    )
    assert result.exit_code == 0, result.exception


def test_the_password_file(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    monkeypatch.setenv("MQIS_USER", "alice@LAB")
    monkeypatch.setenv("MQIS_PASSWORD_FILE", str(secret))
    arguments = ("get", "site", "Berlin", *server.through_mapper)
    with pytest.raises(MqisError, match="secret: the password cannot be read: No such file"):
        raise run(*arguments).exception or AssertionError
    secret.write_bytes(PASSWORDS[ALICE])
    secret.chmod(0o600)
    assert run(*arguments).exit_code == 0
    # As nobody, a site that only users may read is not there.
    assert refused(run(*arguments, "--anonymous")) == HResult.MQDS_OBJECT_NOT_FOUND


def test_no_password_at_all(server: Running) -> None:
    result = run("servers", "--user", ALICE, *server.through_mapper, stdin=b"")
    assert isinstance(result.exception, MqisError)
    assert "MQIS_PASSWORD_FILE" in str(result.exception)


def test_names_of_users() -> None:
    assert split_user("LAB\\alice") == ("LAB", "alice")
    assert split_user("alice@lab.example") == ("lab.example", "alice")
    assert split_user("alice") == ("", "alice")


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "site", "x", "--server", "h", "--store", "s.db"),
        ("create", "queue", "m\\q"),
        ("delete", "queue", "m\\q", "--server", "h:port"),
        ("delete", "queue", "m\\q", "--server", "h", "--user", "LAB\\"),
        ("create", "queue", "--server", "h"),
        ("set", "queue", "m\\q", "--server", "h"),
        ("security", "queue", "m\\q", "--server", "h", "--part", "owner,all"),
    ],
)
def test_a_wrong_command_line_is_status_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.req("MQDS-1.5-03")
def test_a_server_that_does_not_prove_itself(demo_store: Path, tmp_path: Path) -> None:
    """A client that asks for server authentication fails; one with --no-verify is served."""
    prepare(tmp_path, demo_store, CONFIG + 'gss = "none"\n')
    with serving(tmp_path, "--json") as running:
        result = asked(running, "get", "site", "Berlin", user=ALICE)
        assert isinstance(result.exception, MqisError)
        assert "MQDS_E_CANT_INIT_SERVER_AUTH" in str(result.exception)
        assert "--no-verify connects without signatures" in str(result.exception)
        assert done(running, "get", "site", "Berlin", "--no-verify").startswith("site Berlin")
