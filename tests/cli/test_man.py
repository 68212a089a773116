"""The manual pages: written from the commands, and valid for the programs that show them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mqis.cli.man import escaped
from mqis.cli.registry import COMMANDS
from tests.cli.commands import run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("man")
    assert run("man", directory).exit_code == 0
    return directory


def test_every_command_has_a_page(pages: Path) -> None:
    names = {path.name for path in pages.iterdir()}
    assert {"mqis.1", "mqis-journal-check.1"} | {f"mqis-{name}.1" for name in COMMANDS} <= names
    top = (pages / "mqis.1").read_text()
    assert [name for name in COMMANDS if f".BR mqis\\-{escaped(name)} (1)" not in top] == []


def test_a_page_has_the_options_of_the_help(pages: Path) -> None:
    text = (pages / "mqis-lookup.1").read_text()
    for part in (
        ".SH NAME\nmqis\\-lookup \\- list the objects",
        "\\fB\\-\\-where\\fR",
        "MQIS_CONFIG",
    ):
        assert part in text
    assert "\\fIDIRECTORY\\fR" in (pages / "mqis-status.1").read_text()


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        ("--json", "\\-\\-json"),
        (".TH x", "\\&.TH x"),
        ("'so /etc/passwd", "\\(aqso /etc/passwd"),
        ("DOMAIN\\NAME", "DOMAIN\\eNAME"),
    ],
)
def test_no_text_is_a_request(text: str, roff: str) -> None:
    assert escaped(text) == roff


@pytest.mark.interop
def test_mandoc_finds_nothing_wrong(pages: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *sorted(pages.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.interop
def test_man_shows_a_page(pages: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    command = ["man", "--warnings", "-l", str(pages / "mqis-get.1")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "mqis-get - show one object" in done.stdout
