"""Runs the scenarios, each in a directory and a shell of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.docs.pages import Scenario, run_session
from tests.docs.scenarios import SCENARIOS
from tests.plugins.stores import PostgresServer
from tests.s3server import KEY, SECRET, s3_server

QUICK = [each for each in SCENARIOS if not each.slow and each.real != "samba"]


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> dict[str, str]:
    settings = conninfo_to_dict(postgres_server.new_schema().conninfo)
    return {"POSTGRES": f"postgresql://?{urlencode(settings, quote_via=quote)}"}


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[dict[str, str]]:
    with s3_server(tmp_path / "buckets", "backups") as server:
        credential = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        yield {"S3": server.uri("backups/mqis"), **credential}


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
@pytest.mark.parametrize("scenario", QUICK, ids=lambda scenario: scenario.name)
def test_a_page_runs(scenario: Scenario, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = request.getfixturevalue(scenario.real) if scenario.real else {}
    directory = tmp_path / "reader"
    directory.mkdir()
    assert run_session(scenario, directory, environment)
