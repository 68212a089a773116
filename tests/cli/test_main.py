"""The behaviour that all commands share: errors, exit statuses, configuration, pipes."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqis import __version__
from mqis.config.errors import ConfigError
from tests.cli.commands import process, run
from tests.waiting import DEADLINE_S

#: The version, the commit of this checkout if it is one, Python, and Spark.
VERSIONS = re.compile(
    rf"mqis {re.escape(__version__)}, commit ([0-9a-f]{{7,}}(-dirty)?|unknown), "
    rf"Python {re.escape(platform.python_version())}, (Spark 4\.[\d.]+|no Spark)\n"
)


def test_version() -> None:
    done = process("--version")
    assert done.returncode == 0
    assert VERSIONS.fullmatch(done.stdout.decode()), done.stdout


def test_the_installed_command_is_this_one() -> None:
    script = Path(sys.executable).with_name("mqis")
    if not script.exists():
        pytest.skip("mqis is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, check=True)
    assert VERSIONS.fullmatch(done.stdout.decode())


def test_the_package_is_the_command_too() -> None:
    """Exit status and errors included."""
    python = (sys.executable, "-m", "mqis")
    done = subprocess.run([*python, "--version"], capture_output=True, check=True)
    assert VERSIONS.fullmatch(done.stdout.decode())
    wrong = ("get", "quue", "x")
    done = subprocess.run([*python, *wrong], capture_output=True, check=False)
    as_ever = process(*wrong)
    assert (done.returncode, done.stderr) == (as_ever.returncode, as_ever.stderr)
    assert done.stderr.startswith(b"Usage: mqis get ")


def test_an_error_is_one_line_on_stderr_and_status_1(tmp_path: Path) -> None:
    """And what names hold does not act on the terminal."""
    done = process("store", "check", "--store", f"{tmp_path}/\x1b[31m[bold]x.db")
    assert done.returncode == 1
    assert done.stdout == b""
    text = done.stderr.decode()
    assert text.count("\n") == 1
    assert text.startswith(f"mqis: {tmp_path}/\\x1b[31m[bold]x.db: there is no store")


def test_misuse_is_status_2() -> None:
    result = run("get", "quue", "x")
    assert result.exit_code == 2
    assert "enterprise" in result.stderr  # the list of types


def test_without_a_store_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MQIS_CONFIG", raising=False)
    error = run("lookup", "queue").exception
    assert isinstance(error, ConfigError)
    assert "--store" in str(error)
    assert "mqis init" in str(error)


def test_the_store_of_the_configuration_here(
    demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MQIS_CONFIG", raising=False)
    config = tmp_path / "mqis.toml"
    config.write_text(f'[store]\nurl = "sqlite:{demo_store}"\n', encoding="utf-8")
    assert run("store", "check").stdout.startswith("ok: 1 enterprise, 3 sites")


def test_the_store_of_another_configuration(
    demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    config = tmp_path / "sub" / "other.toml"
    relative = os.path.relpath(demo_store, config.parent)
    config.write_text(f'[store]\nurl = "sqlite:{relative}"\n', encoding="utf-8")
    assert run("store", "check", "--config", config).exit_code == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MQIS_CONFIG", str(config))
    assert run("store", "check").exit_code == 0


def test_a_wrong_configuration_names_its_key(tmp_path: Path) -> None:
    config = tmp_path / "mqis.toml"
    config.write_text('[server]\nrole = "boss"\n', encoding="utf-8")
    error = run("store", "check", "--config", config).exception
    assert isinstance(error, ConfigError)
    assert str(error).endswith("mqis.toml: server.role: 'boss' is not one of pec, psc, bsc, none")


def test_a_store_that_is_none() -> None:
    error = run("store", "check", "--store", "mysql://x").exception
    assert isinstance(error, ConfigError)


def test_a_reader_that_goes_away_is_no_error(demo_store: Path) -> None:
    command = [sys.executable, "-m", "mqis.cli.main", "export", "--store", str(demo_store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        assert writer.stdout.read(10) == b'{"format":'
        writer.stdout.close()
        assert writer.stderr.read() == b""
        assert writer.wait() in (0, 1)


def test_an_interrupt_is_status_130_and_imports_nothing(tmp_path: Path) -> None:
    """In the middle of a file: a pipe that opens when the command opens it, and then is silent."""
    pipe, store = tmp_path / "pipe", tmp_path / "d.db"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "mqis.cli.main", "import", str(pipe), "-s", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as importing:
        with pipe.open("wb", buffering=0) as out:
            out.write(
                b'{"format":"mqis-directory","version":1,"enterprise":null,"partitions":[]}\n'
            )
            importing.send_signal(signal.SIGINT)
            output, errors = importing.communicate(timeout=DEADLINE_S)
        assert importing.returncode == 130
    assert output == b""
    assert errors == b"mqis: interrupted\n"
    assert list(tmp_path.iterdir()) == [pipe]


def test_names_that_the_terminal_cannot_write() -> None:
    done = process(
        *("decode", "-p", "serverlist", "Zürich;\\10srv".encode("utf-16-le").hex()),
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert b"Z\\xfcrich" in done.stdout
