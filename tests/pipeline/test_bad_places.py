"""Places of inputs that cannot be used: each is one line with status 1, within seconds, before
Spark starts and before anything is written."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from mqis.pipeline import session
from mqis.places import remote
from mqis.testing.ports import free_port
from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.s3server import SECRET, S3Server

pytestmark = pytest.mark.interop

#: Connections that are refused, are tried again once.
_SECONDS = 60
COMMANDS = [
    pytest.param(("pipeline", "run", "--journals"), id="run"),
    pytest.param(("pipeline", "ingest", "--exports"), id="exports"),
    pytest.param(("pipeline", "ingest", "--captures"), id="captures"),
    pytest.param(("pipeline", "stream", "--once", "--journals"), id="stream"),
    pytest.param(("journal", "check"), id="check"),
]


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_given: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(session, "open_session", start)


def told(command: tuple[str, ...], place: str, directory: Path) -> str:
    """The error of a command; it is one line, and leaves nothing behind."""
    tables = ("--tables", str(directory / "tables")) if command[0] == "pipeline" else ()
    remote.forget_systems()
    start = monotonic()
    done = run(*command, place, *tables)
    assert monotonic() - start < _SECONDS
    assert done.exit_code == 1
    assert isinstance(done.exception, MqisError)
    text = str(done.exception)
    assert "\n" not in text
    assert SECRET not in text
    assert not (directory / "tables").exists()
    return text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bucket_that_cannot_be_reached(command: tuple[str, ...], tmp_path: Path) -> None:
    at = f"127.0.0.1:{free_port()}"
    text = told(command, f"s3://bucket/x?endpoint_override={at}&scheme=http&region=x", tmp_path)
    assert text.startswith(f"s3://bucket/x?endpoint_override={at}")
    assert "the store cannot be reached" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bucket_that_does_not_exist(
    command: tuple[str, ...], s3: S3Server, tmp_path: Path
) -> None:
    text = told(command, s3.uri("nowhere/x"), tmp_path)
    assert "s3://nowhere/x" in text
    assert "there is no such bucket" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_credential_that_is_missing_or_wrong(
    command: tuple[str, ...], s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "quite-wrong")
    assert "the credential is missing, wrong" in told(command, s3.uri("bucket/x"), tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "set it in the environment" in told(command, s3.uri("bucket/x"), tmp_path)
