"""``mqis diff`` and ``mqis export --server``: files, stores, servers; the status of diff(1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import process, run
from tests.cli.running import ALICE, PASSWORDS, Running, prepare, serving


@pytest.fixture(scope="module")
def monday(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff") / "monday.jsonl"
    assert run("export", path, "--store", demo_store).exit_code == 0
    return path


@pytest.fixture
def friday(monday: Path, tmp_path: Path) -> Path:
    """One queue has another label, one is gone."""
    lines = monday.read_text("ascii").splitlines()
    kept = [line for line in lines if '"ams-app1\\\\cache"' not in line]
    text = "\n".join([*kept, ""])
    path = tmp_path / "friday.jsonl"
    changed = re.sub('("ams-app1.{2}audit".*)"Audit trail"', r'\1"Audit <b>\\u001b"', text)
    path.write_text(re.sub(r',"lines":\d+', "", changed), "ascii")
    return path


def test_equal_directories(demo_store: Path, monday: Path) -> None:
    done = run("diff", monday, demo_store)
    assert done.exit_code == 0
    assert done.stdout == f"{monday} -> sqlite:{demo_store}: no differences\n"
    assert run("diff", demo_store, f"sqlite:{demo_store}").exit_code == 0


def test_differences_in_names(monday: Path, friday: Path) -> None:
    done = run("diff", monday, friday)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{monday} -> {friday}: 1 deleted, 1 changed",
        "queue:",
        "  ~ ams-app1\\audit",
        "      label: Audit trail -> Audit <b>\\x1b",
        "  - ams-app1\\cache",
    ]


def test_json(monday: Path, friday: Path) -> None:
    done = run("diff", friday, monday, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["counts"] == {"created": 1, "deleted": 0, "changed": 1, "replaced": 0}
    changed, created = found["objects"]
    assert (changed["type"], changed["name"]) == ("queue", "ams-app1\\audit")
    (each,) = changed["properties"]
    assert (each["name"], each["before_text"]) == ("label", "Audit <b>\x1b")
    assert (created["change"], created["name"]) == ("created", "ams-app1\\cache")
    values = {each["name"]: (each["before"], each["after"]) for each in created["properties"]}
    assert values["scope"] == (None, 0)


def test_a_page_for_a_browser(monday: Path, friday: Path, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    assert run("diff", monday, friday, "--html", page).exit_code == 1
    text = page.read_text("utf-8")
    assert "Audit &lt;b&gt;\\x1b" in text
    assert "<b>" not in text
    assert not list(tmp_path.glob("*.part"))


def test_parts_of_the_directories(monday: Path, friday: Path) -> None:
    assert run("diff", monday, friday, "--type", "machine", "--type", "site").exit_code == 0
    only = run("diff", monday, friday, "--type", "queue", "--ignore", "label")
    assert "1 deleted\n" in only.stdout


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("postgresql://user:secret@host/db", "a password on the command line"),
        ("server:127.0.0.1:1", "127.0.0.1:1"),
        ("{}@yesterday", "is no moment"),
        ("{}", "no segment and no snapshot"),
    ],
)
def test_trouble_is_status_2(monday: Path, tmp_path: Path, text: str, error: str) -> None:
    done = run("diff", monday, text.format(tmp_path))
    assert done.exit_code == 2
    assert error in done.stderr
    assert done.stdout == ""


def test_trouble_is_one_line(monday: Path, tmp_path: Path) -> None:
    done = process("diff", monday, "absent.jsonl", directory=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"mqis: absent.jsonl: cannot be read: No such file or directory\n"


def test_a_damaged_export_is_trouble(monday: Path, friday: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(monday.read_bytes().splitlines(keepends=True)[:-1]))
    page = tmp_path / "page.html"
    done = run("diff", cut, friday, "--html", page)
    assert done.exit_code == 2
    assert "cut.jsonl: line 1, lines: announces" in done.stderr
    assert not page.exists()


# --- a server -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("served")
    prepare(place, demo_store)
    with serving(place, "--json") as running:
        yield running


@pytest.fixture(scope="module")
def logon(server: Running) -> dict[str, str]:
    path = server.directory / "password"
    path.write_bytes(PASSWORDS[ALICE])
    path.chmod(0o600)
    return {"MQIS_USER": ALICE, "MQIS_PASSWORD_FILE": str(path)}


def test_a_server_has_what_its_store_has(
    server: Running, monday: Path, logon: dict[str, str], tmp_path: Path
) -> None:
    done = process("diff", monday, f"server:{server.address}", env=logon)
    assert done.returncode == 0, done.stdout
    assert b"not compared, because a side does not tell it: multicast_address" in done.stdout
    assert b"as LAB\\alice sees it" in done.stdout
    file = tmp_path / "served.jsonl"
    exported = process("export", file, "--server", server.address, env=logon)
    assert exported.stdout.decode() == f"wrote {file}: 95 objects, as the user sees them\n"
    assert run("diff", file, monday, "--ignore", "psc_signpk").exit_code == 0
    copy = tmp_path / "copy.db"
    assert b"60 queues" in process("import", file, "--store", copy).stdout


def test_a_password_is_asked_for_once(server: Running) -> None:
    both = f"server:{server.address}", f"server:{server.address}"
    options = "--user", ALICE, "--no-permissions"
    done = process("diff", *both, *options, stdin=PASSWORDS[ALICE])
    assert done.returncode == 0, done.stderr
    assert b"psc_signpk, security" in done.stdout


def test_a_server_is_a_side(monday: Path) -> None:
    done = run("diff", monday, monday, "--server", "127.0.0.1")
    assert done.exit_code == 2
    assert "write a server as server:HOST" in done.stderr


@pytest.mark.req("SEC-12-09")
def test_an_anonymous_user_sees_less_and_is_told(server: Running, monday: Path) -> None:
    done = process("diff", monday, f"server:{server.address}", env={"MQIS_USER": ""})
    assert done.returncode == 1
    assert b"as an anonymous user sees it" in done.stdout
    assert b"  - Amsterdam" in done.stdout


def test_the_store_of_a_running_server_is_not_imported_into(server: Running, monday: Path) -> None:
    done = process("import", monday, "--store", server.directory / "directory.db")
    assert done.returncode == 1
    assert b"uses this store; stop it first" in done.stderr
    assert b"create them through it" in done.stderr
