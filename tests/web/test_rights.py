"""Read access of accounts and guests, and what lists and the journal show them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.config.sections import SecuritySection
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.guard import Access
from mqis.server.accounts import AccountsFile
from mqis.views.console import guarded
from mqis.views.console.directory_pages import counts, listing
from mqis.views.console.guarded import GuardedSource, Remembered
from mqis.views.console.journal_sight import ObjectJudge, Sight
from mqis.views.console.server_places import Places, ServerPlace
from mqis.views.console.visitor_rights import EVERYTHING, Guest, Proof, RightsBook, VisitorRights
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE
from tests.web.asking import Visitor

CONFIG = '[server]\nname = "dir1"\n[security]\ndomain = "LAB"\n'
BOB = Proof.of("LAB", "bob", "dir1", "builder")


@pytest.fixture
def place(tmp_path: Path) -> ServerPlace:
    (tmp_path / "mqis.toml").write_text(CONFIG, encoding="utf-8")
    AccountsFile(tmp_path / "accounts.toml").add("bob", "builder", domain="LAB")
    return ServerPlace("dir1", store="x", rpc="127.0.0.1:1", config=tmp_path / "mqis.toml")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rights") / "demo.db"
    with closing(open_store(str(path), create=True)) as made:
        demo.build(made)
    return path


@pytest.fixture
def source(store: Path) -> Iterator[GuardedSource]:
    """As anonymous reads it."""
    with closing(open_store(str(store))) as opened, opened.read() as view:
        yield GuardedSource(view, "demo", Guest().rights(SecuritySection()))


# --- accounts -------------------------------------------------------------------------------------


@pytest.mark.req("SEC-9-01")
def test_an_account_counts_with_its_password_only(place: ServerPlace) -> None:
    book = RightsBook(Guest())
    bob = book.rights(place, BOB)
    assert bob is not None
    assert bob.token.holds(EVERYONE)
    assert bob.token.user not in (None, ANONYMOUS)
    assert not bob.everything
    elsewhere = replace(place, name="dir2")
    assert book.rights(elsewhere, BOB) == bob, "the same account, believed by another server"
    guessed = Proof.of("LAB", "bob", "dir1", "guess")
    assert book.rights(elsewhere, guessed) == book.rights(elsewhere, None)
    assert book.rights(place, guessed) is None, "the server believed it: only the server knows why"


@pytest.mark.req("SEC-9-01")
def test_an_account_that_is_removed_reads_no_more(place: ServerPlace, tmp_path: Path) -> None:
    book = RightsBook(Guest())
    elsewhere = replace(place, name="dir2")
    before = book.rights(elsewhere, BOB)
    AccountsFile(tmp_path / "accounts.toml").remove("bob", "LAB")
    assert before != book.rights(elsewhere, BOB) == book.rights(elsewhere, None)
    (tmp_path / "accounts.toml").unlink()
    assert book.rights(elsewhere, BOB) == book.rights(elsewhere, None)


@pytest.mark.req("SEC-9-01")
def test_the_configuration_says_who_administrators_are(place: ServerPlace, tmp_path: Path) -> None:
    book = RightsBook(Guest())
    bob = book.rights(place, BOB)
    assert bob is not None
    sid = bob.token.user
    (tmp_path / "mqis.toml").write_text(f'{CONFIG}administrators = ["{sid}"]\n', encoding="utf-8")
    now = book.rights(place, BOB)
    assert now is not None
    assert now.everything


@pytest.mark.req("SEC-9-01")
@pytest.mark.parametrize("anonymous", ["true", "false"])
def test_anonymous_is_one_of_everyone_where_the_server_says_so(
    place: ServerPlace, tmp_path: Path, anonymous: str
) -> None:
    (tmp_path / "mqis.toml").write_text(f"{CONFIG}anonymous = {anonymous}\n", encoding="utf-8")
    guest = RightsBook(Guest()).rights(place, None)
    assert guest is not None
    assert guest.token.holds(EVERYONE) is (anonymous == "true")


@pytest.mark.req("SEC-9-01")
def test_names_of_accounts_are_for_those_who_have_one(place: ServerPlace, tmp_path: Path) -> None:
    book = RightsBook(Guest())
    (account,) = AccountsFile(tmp_path / "accounts.toml").accounts()
    assert book.account_names(place, BOB) == {account.sid: "LAB\\bob"}
    assert book.account_names(place, None) == {}
    guessed = Proof.of("LAB", "bob", "dir2", "guess")
    assert book.account_names(place, guessed) == {}
    assert RightsBook(Guest.parse("S-1-5-11")).account_names(place, None) == {}
    administrator = RightsBook(Guest.parse("administrator"))
    assert administrator.account_names(place, None) == {account.sid: "LAB\\bob"}
    (tmp_path / "accounts.toml").unlink()
    assert administrator.account_names(place, None) == {}
    assert administrator.account_names(replace(place, config=None), None) == {}


# --- guests ---------------------------------------------------------------------------------------


def test_whom_guests_can_be() -> None:
    assert Guest.parse("Anonymous") == Guest()
    assert Guest.parse("administrator").rights(SecuritySection()) == EVERYTHING
    sid = Guest.parse("S-1-5-21-1-2-3-1000")
    rights = sid.rights(SecuritySection())
    assert (str(sid), rights.everything) == ("S-1-5-21-1-2-3-1000", False)
    assert Guest.parse(str(ADMINISTRATORS)).rights(SecuritySection()).everything
    with pytest.raises(MqisError, match="--as nobody"):
        Guest.parse("nobody")


@pytest.mark.req("SEC-9-01")
def test_only_the_server_knows_what_guests_may_read_of_it(place: ServerPlace) -> None:
    """A store and a server whose configuration is not here: it may know no anonymous callers."""
    unknown = replace(place, config=None)
    assert RightsBook(Guest()).rights(unknown, None) is None
    assert RightsBook(Guest()).rights(unknown, BOB) is None
    assert RightsBook(Guest(everything=True)).rights(unknown, None) == EVERYTHING
    assert RightsBook(Guest(everything=True)).rights(unknown, BOB) is None
    file = replace(unknown, rpc=None)
    assert RightsBook(Guest()).rights(file, None) == Guest().rights(SecuritySection())


@pytest.mark.req("SEC-9-01")
def test_who_comes_from_elsewhere_is_never_made_an_administrator(store: Path) -> None:
    with pytest.raises(MqisError, match="--as"):
        ConsoleSettings(
            Places(stores=(str(store),)),
            listen="0.0.0.0",
            allow_remote=True,
            guest=Guest(everything=True),
        )


@pytest.mark.req("SEC-9-01")
def test_a_store_alone_shows_what_the_command_line_says(store: Path) -> None:
    settings = ConsoleSettings(Places(stores=(str(store),)), port=0)
    with running_console(settings) as url:
        anonymous = Visitor(url)
        assert "54 queues" in anonymous.get("/").text
        assert "mqis console --as" in anonymous.get("/").text
    with running_console(replace(settings, guest=Guest(everything=True))) as url:
        administrator = Visitor(url)
        assert "60 queues" in administrator.get("/").text
        assert "Reading only, as administrator" in administrator.get("/").text


@pytest.mark.req("SEC-9-02")
def test_without_a_run_directory_the_token_is_in_a_private_one(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with running_console(ConsoleSettings(Places(stores=(str(store),)), port=0)) as url:
        (file,) = tmp_path.rglob("console-*.url")
        assert file.read_text(encoding="ascii").strip() == url
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.rglob("console-*.url")) == []


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.req("SEC-7-09")
def test_a_list_goes_so_far(source: GuardedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "MOST_FOUND", 10)
    monkeypatch.setattr(guarded, "MOST_COUNTED", 10)
    found = listing(source, "queue")
    assert (found.found, found.cut, len(found.rows)) == (10, True, 10)
    queues = counts(source)["queue"]
    assert queues.more
    assert queues.number <= 10
    assert not counts(source)["enterprise"].more


@pytest.mark.req("SEC-7-09")
def test_so_much_is_remembered_of_stores() -> None:
    made: list[str] = []

    def get(key: str, version: int) -> str:
        def make() -> str:
            made.append(f"{key}{version}")
            return made[-1]

        return known.get(key, ((key, version),), make)

    known: Remembered[str] = Remembered(2)
    assert [get("a", 1), get("a", 1), get("b", 1), get("a", 2), get("a", 2)] == [
        *("a1", "a1", "b1", "a2", "a2")
    ]
    get("c", 1)
    get("b", 1)
    assert made == ["a1", "b1", "a2", "c1", "b1"], "b made room for c"


# --- the journal ----------------------------------------------------------------------------------


def record(kind: RecordKind, object_type: int = 0, object_id: Guid = Guid.NULL) -> JournalRecord:
    return JournalRecord(0, kind, RecordState.LOCAL, object_type=object_type, object_id=object_id)


@pytest.mark.req("SEC-9-01")
def test_what_is_seen_of_a_journal(source: GuardedSource) -> None:
    judge = ObjectJudge(source)
    machine = next(source.objects(ObjectType.MACHINE))
    change, message = RecordKind.CHANGE, RecordKind.MESSAGE
    assert judge(record(change, ObjectType.MACHINE, machine.id)) is Sight.EVERYTHING
    assert judge(record(message, ObjectType.MACHINE, machine.id)) is Sight.LINE
    assert judge(record(message)) is Sight.LINE
    assert judge(record(change)) is Sight.NOTHING
    assert judge(record(change, 99, machine.id)) is Sight.NOTHING
    assert judge(record(change, ObjectType.QUEUE, machine.id)) is Sight.NOTHING, "it is deleted"
    without_store = ObjectJudge(None)
    assert without_store(record(change, ObjectType.MACHINE, machine.id)) is Sight.NOTHING


def test_rights_that_are_equal_judge_alike(store: Path) -> None:
    """They are keys of what is remembered: nobody gets a list of somebody else."""
    anonymous = Guest().rights(SecuritySection())
    bob = VisitorRights(
        Guest.parse("S-1-5-21-1-2-3-1000").rights(SecuritySection()).token, frozenset()
    )
    lists: Remembered[guarded.Found] = Remembered(8)
    with closing(open_store(str(store))) as opened, opened.read() as view:
        numbers = [
            listing(GuardedSource(view, "demo", rights, lists), "queue").found
            for rights in (EVERYTHING, anonymous, bob, anonymous)
        ]
        readable = sum(
            anonymous.guard().allows(queue, Access.READ, view)
            for queue in view.objects(ObjectType.QUEUE)
        )
    assert numbers == [60, readable, 60, readable]
    assert readable == 54
