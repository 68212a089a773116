"""Every command, with files and directories that it cannot use: one line, and never a traceback.

The commands and their options come from the registry, so a new command is tried without a line
here. They run in this process, which may not read or write the places, even if it is root's.
"""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from mqis.cli.completing import is_place
from mqis.cli.main import app, main
from mqis.cli.parameters import choices
from mqis.pipeline.session import java_home
from tests.cli.commands import logging_as_it_was
from tests.waiting import DEADLINE_S

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1 << 1, 1 << 2
#: Options that make a command end at once which would run for long, if the place does not end it.
QUICK = {
    ("console",): ("--listen", "192.0.2.1", "--allow-remote"),
    ("journal", "tail"): ("--no-follow",),
    ("sim",): ("--seed", "1", "--steps", "0"),
    ("send",): ("--directory", "nowhere"),
    ("send", "--store"): (),
}
#: Arguments that have to be of a form of their own.
VALUES = {
    "HOST/CID": "HOST/00000000-0000-0000-0000-000000000001",
    "LSN[-LSN]": "1",
    "TIME|SEQ": "2024-03-05",
    "TYPE": "site",
}


Words = tuple[str, ...]


def leaves(command: Any = None, words: Words = ()) -> Iterator[tuple[Words, Any]]:
    """Every command that is no group, with the words that call it."""
    command = command or typer.main.get_command(app)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from leaves(command.get_command(None, name), (*words, name))
    else:
        yield words, command


#: Nobody listens at this port.
ADDRESS = "127.0.0.1:1"


def called(
    words: tuple[str, ...], command: Any, chosen: Any, place: str, other: str | None = None
) -> list[str]:
    """The command line with ``place`` for one parameter, and something for the required ones.

    ``other`` is the place that required parameters get, if not the same.
    """
    options = [*words]
    arguments = []
    for parameter in command.params:
        known = VALUES.get(parameter.metavar or "", "x=y")
        value = (other or place) if is_place(parameter) else known
        value = place if parameter is chosen else value
        if parameter is not chosen and not parameter.required:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(value)
        else:
            options += [parameter.opts[0], value]
    option = chosen.opts[0]
    extra = QUICK.get((*words, option), QUICK.get(words, ()))
    extra = () if option in extra else extra
    return [*options, *extra, *arguments]


CASES = [
    pytest.param(words, command, parameter, id=" ".join((*words, parameter.opts[0])))
    for words, command in leaves()
    for parameter in command.params
    if is_place(parameter)
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Places that a command cannot use."""
    home = tmp_path_factory.mktemp("wrong")
    locked, shown, garbage, secret = (home / n for n in ("locked", "shown", "garbage", "secret"))
    locked.mkdir()
    shown.mkdir()
    garbage.write_bytes(b"\xff\xfe\x00garbage\n" * 20)
    secret.write_bytes(b"secret")
    secret.chmod(0)
    shown.chmod(0o555)
    locked.chmod(0)
    return [locked / "x", secret, shown, shown / "x", garbage, garbage / "x"]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = tuple((f"{name}{part}", ctypes.c_uint32) for part in (0, 1) for name in "epi")


@contextmanager
def obeying_modes() -> Iterator[None]:
    """Takes root's right to ignore the modes of files away; other users have none to lose."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, held = _CapabilityHeader(0x2008_0522, 0), _Capabilities()
    assert libc.capget(ctypes.byref(header), ctypes.byref(held)) == 0
    fewer = _Capabilities.from_buffer_copy(held)
    fewer.e0 &= ~(CAP_DAC_OVERRIDE | CAP_DAC_READ_SEARCH)
    assert libc.capset(ctypes.byref(header), ctypes.byref(fewer)) == 0
    try:
        yield
    finally:
        assert libc.capset(ctypes.byref(header), ctypes.byref(held)) == 0


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No configuration, no Java, no wait without an end; the log handlers are put back."""
    for name in ("MQIS_CONFIG", "MQIS_RUN", "MQIS_USER", "MQIS_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MQIS_NO_SYSTEM_JAVA", "1")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    java_home.cache_clear()
    monkeypatch.chdir(tmp_path)
    signal.alarm(int(DEADLINE_S))
    with logging_as_it_was():
        yield
    signal.alarm(0)
    java_home.cache_clear()


class Outcome(NamedTuple):
    """A command line, and how it ended."""

    line: str
    status: object
    output: str
    errors: str

    def is_told(self) -> bool:
        """True if it ended well, or with one line, or with findings, and not in a fault of mqis."""
        if "Traceback" in self.errors or "internal error" in self.errors:
            return False
        told = [text for text in self.errors.splitlines() if text.startswith("mqis: ")]
        return self.status in (0, 2) or len(told) == 1 or bool(self.output and not told)


@pytest.fixture
def mqis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], Outcome]:
    """Runs a command line in this process."""

    def run(line: list[str]) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["mqis", *line])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        capsys.readouterr()
        with obeying_modes(), pytest.raises(SystemExit) as ended:
            main()
        return Outcome(" ".join(line), ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.mark.parametrize(("words", "command", "parameter"), CASES)
def test_a_place_that_cannot_be_used_is_one_line(
    words: Words, command: Any, parameter: Any, places: list[Path], mqis: Any
) -> None:
    lines = [called(words, command, parameter, str(place)) for place in places]
    ended = [mqis(line) for line in lines]
    assert [each for each in ended if not each.is_told()] == []


URIS = [
    pytest.param(words, command, parameter, id=" ".join((*words, parameter.opts[0])))
    for words, command in leaves()
    for parameter in command.params
    if is_place(parameter) or parameter.metavar in ("PATH", "DIRECTORY")
]


@pytest.mark.parametrize(("words", "command", "parameter"), URIS)
def test_a_scheme_that_nothing_here_knows_is_an_error(
    words: Words, command: Any, parameter: Any, mqis: Any, tmp_path: Path
) -> None:
    """Python would take it for a directory in this one."""
    ended = mqis(called(words, command, parameter, "x3a://bucket/x"))
    assert ended.is_told(), ended
    assert ended.status in (1, 2), ended
    assert not [path.name for path in tmp_path.rglob("*") if "x3a" in path.name]


#: A well-formed path of which nothing can be read or written, so that no command begins its work.
NOWHERE = "/dev/null/nowhere"
#: Values of each kind that a metavar may name. Nothing is there, and nobody listens.
KINDS: dict[str, tuple[str, ...]] = {
    "-": ("-",),
    "ADDRESS[:PORT]": (ADDRESS, "127.0.0.1"),
    "DIR": (NOWHERE,),
    "DIRECTORY": (NOWHERE,),
    "FILE": (NOWHERE,),
    "HEX": ("00",),
    "LDAPS://HOST": (f"ldaps://{ADDRESS}", f"ldap://{ADDRESS}"),
    "PATH": (NOWHERE, f"file://{NOWHERE}"),
    "SEQ": ("12",),
    "STORE": (NOWHERE, f"sqlite:{NOWHERE}", f"postgresql://{ADDRESS}/x"),
    "TIME": ("2024-03-05T12:00:00Z", "2024-03-05"),
    "URI": (f"file://{NOWHERE}", f"s3://nowhere/x?endpoint_override={ADDRESS}&scheme=http"),
    "URL": (f"ldaps://{ADDRESS}",),
}
#: What a command wants beside a place; without it, it ends before it looks at that.
COMPANY: dict[Words, tuple[str, ...]] = {
    ("estate", "resolve", "--keytab"): ("--user", "reader@corp.example"),
    ("key", "rotate", "--run"): ("ams-dir1",),
    ("map",): ("--json",),
    ("mirror",): ("--once", f"ldaps://{ADDRESS}"),
    ("pipeline", "ingest"): ("--journals", NOWHERE),
    ("pipeline", "ingest", "--run"): (),
    ("pipeline", "rebuild", "--at"): ("--partition", "49e0ef07-0000-0000-0000-000000000001"),
    ("pipeline", "run"): ("--journals", NOWHERE),
    ("pipeline", "run", "--run"): (),
    ("pipeline", "stream"): ("--journals", NOWHERE),
    ("promote",): ("--server", ADDRESS),
    ("promote", "--to"): ("--rebuild", "x", "--server", ADDRESS),
    ("undelete",): ("--server", ADDRESS),
}
#: URLs of other kinds than an Active Directory's.
URLS = {"--monitor": f"http://{ADDRESS}", "--master": "local[1]"}
#: Spark looks for this server for minutes. ``make engines`` calls it with one that is there.
WAITED_FOR = "--remote"
#: What a command says that does not take a kind of value.
REFUSALS = ("give a path", "is a URI", "Usage:", "Traceback", "internal error")


def kinds(parameter: Any) -> list[str]:
    """The kinds of values that a parameter's metavar names: ``[FILE|-]`` are two.

    One with choices refuses every other word, and names them itself.
    """
    if choices(parameter):
        return []
    metavar = (parameter.metavar or "").replace("...", "")
    if metavar in KINDS:
        return [metavar]
    return [kind for kind in metavar.strip("[]").split("|") if kind]


def values(parameter: Any) -> list[str]:
    """A value of each kind; of parameters that are always a name or a number, none."""
    if parameter.opts[0] == WAITED_FOR:
        return []
    if parameter.opts[0] in URLS:
        return [URLS[parameter.opts[0]]]
    return [value for kind in kinds(parameter) for value in KINDS.get(kind, ())]


SHOWN = [
    pytest.param(words, command, parameter, id=" ".join((*words, parameter.opts[0])))
    for words, command in leaves()
    for parameter in command.params
    if values(parameter)
]


@pytest.mark.parametrize(("words", "command", "parameter"), SHOWN)
def test_no_command_refuses_a_kind_of_value_that_its_help_names(
    words: Words, command: Any, parameter: Any, mqis: Any
) -> None:
    option = parameter.opts[0]
    company = COMPANY.get((*words, option), COMPANY.get(words, ()))
    if option in company or parameter.param_type_name == "argument":
        company = ()
    lines = [called(words, command, parameter, v, NOWHERE) for v in values(parameter)]
    ended = [mqis([*line, *company]) for line in lines]
    assert [each for each in ended if any(text in each.errors for text in REFUSALS)] == []


def test_alternatives_are_of_known_kinds() -> None:
    """Else the test above would pass over them."""
    named = {kind for each in SHOWN for kind in kinds(each.values[2])}
    several = {
        kind
        for _, command in leaves()
        for parameter in command.params
        if len(kinds(parameter)) > 1
        for kind in kinds(parameter)
    }
    assert several <= set(KINDS)
    assert named <= set(KINDS)


SERVED = [
    pytest.param(words, command, parameter, id=" ".join(words))
    for words, command in leaves()
    for parameter in command.params
    if "--server" in parameter.opts and words not in QUICK
]


@pytest.mark.parametrize(("words", "command", "parameter"), SERVED)
def test_a_server_that_does_not_answer_is_named_once(
    words: Words, command: Any, parameter: Any, mqis: Any
) -> None:
    ended = mqis(called(words, command, parameter, ADDRESS))
    assert ended.is_told(), ended
    assert ended.status in (1, 2), ended
    assert ended.errors.count(ADDRESS) <= 1, ended


def is_number(parameter: Any) -> bool:
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:
        return str(parameter.type.name).partition(" ")[0] in {"integer", "float"}
    return descriptor.annotation in (int, float)


@pytest.mark.parametrize(
    ("words", "command"),
    list(leaves()),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_value_of_another_kind_is_a_wrong_command_line(
    words: Words, command: Any, mqis: Any
) -> None:
    """Numbers and choices are checked before anything runs."""
    for parameter in command.params:
        if is_number(parameter) or choices(parameter):
            ended = mqis(called(words, command, parameter, "nonsense"))
            assert ended.status == 2, ended
            assert "Traceback" not in ended.errors, ended
