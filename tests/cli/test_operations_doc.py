"""docs/operations.md: its first example runs as it stands, and what it and deploy/ name exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from mqis.cli.main import app
from mqis.services.enterprise.example import EXAMPLE

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text("utf-8")
UNIT = ROOT / "deploy" / "mqis@.service"
CONTAINER = ROOT / "deploy" / "Containerfile"


def test_the_example_runs(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("mqis")
    if not command.exists():
        pytest.skip("mqis is not installed beside this Python")
    script = re.findall(r"^```sh\n(.*?)^```", TEXT, re.S | re.M)[0]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    path = f"{command.parent}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=tmp_path,
            env=kept | {"PATH": path},
            capture_output=True,
            check=False,
            timeout=180,
        )
    finally:
        subprocess.run([command, "down"], cwd=tmp_path, check=False, capture_output=True)
    text = done.stdout.decode()
    assert done.returncode == 0, text + done.stderr.decode()
    for line in (
        "Meridian is up: 5 servers ready after ",
        "Meridian  5 of 5 servers up, process ",
        "created queue C14\\testq (",
        "killed ber-dir2, process ",
        "chi-dir1 is stopped; ",
        "chi-dir1 is ready, process ",
        "ber-dir2 ended (SIGKILL); starting it again",
        "Meridian is down",
    ):
        assert line in text, line


def test_the_run_directory_and_the_file_are_explained() -> None:
    for key in tomllib.loads(EXAMPLE):
        assert f"[[{key}]]" in TEXT or f"`[{key}" in TEXT, key


def options_of(name: str) -> set[str]:
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    return {word for parameter in command.params for word in parameter.opts}


def test_every_command_of_the_document_exists() -> None:
    known = typer.main.get_command(app).list_commands(None)  # type: ignore[attr-defined]
    named = set(re.findall(r"mqis ([a-z]+)(?=[ `\n])", re.sub(r"pip install mqis", "", TEXT)))
    assert {"up", "down", "status", "logs", "stop", "start", "kill"} <= named
    assert named <= {*known, "is"}, named - set(known)


def commands_in(text: str) -> list[list[str]]:
    """The words after each ``mqis``, of a command line or of a JSON list."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [line.split()[1:] for line in lines if line.startswith("ExecStart=")]
    found += [json.loads(line[4:]) for line in lines if line.startswith("CMD ")]
    return found


@pytest.mark.parametrize("path", [UNIT, CONTAINER], ids=lambda path: path.name)
def test_what_is_deployed_can_be_run(path: Path) -> None:
    found = commands_in(path.read_text("utf-8"))
    assert len(found) == 1
    name, *words = found[0]
    assert name == "serve"
    given = {word for word in words if word.startswith("-")}
    assert "--config" in given
    assert given <= options_of(name)


def test_the_image_has_what_it_copies() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER.read_text("utf-8"), re.M)
    for words in copied:
        for name in words.split():
            assert (ROOT / name).exists(), name


def test_the_unit_is_one_and_hardened(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8")
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectory=mqis/%i",
        "LoadCredential=accounts:",
        "DynamicUser=yes",
    ):
        assert line in text, line
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze")
    copy = tmp_path / "mqis@.service"  # with a program that is installed here
    copy.write_text(text.replace("/opt/mqis/bin/mqis", sys.executable), encoding="utf-8")
    done = subprocess.run([verify, "verify", copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mqis" not in done.stderr, done.stderr
