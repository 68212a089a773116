"""One enterprise and one console for all tests of the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.web.asking import Visitor
from tests.web.enterprise import Enterprise

REPORT = "<!doctype html><title>report</title><style>p{color:red}</style><p>All replicas agree."


@pytest.fixture(scope="session")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    made = Enterprise(tmp_path_factory.mktemp("enterprise"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of 'mqis pipeline', as far as the console reads it."""
    directory = tmp_path_factory.mktemp("pipeline") / "tables"
    directory.mkdir()
    (directory / "report.html").write_text(REPORT, encoding="utf-8")
    lag: dict[str, list[object]] = {
        "origin": ["ams-dir1"],
        "server": ["ber-dir1"],
        "p95_ms": [12.5],
    }
    _table(directory, "lag", lag)
    _table(directory, "divergence", {"server": ["ber-dir1"] * 2, "cause": ["lost", "lost"]})
    hygiene: dict[str, list[object]] = {
        "check": ["writable"] * 3,
        "explanation": ["everyone may send to the queue"] * 3,
        "type": ["queue"] * 3,
    }
    _table(directory, "hygiene", hygiene)
    return directory


def _table(directory: Path, name: str, columns: dict[str, list[object]]) -> None:
    place = directory / name / "v000003"
    place.mkdir(parents=True)
    (directory / name / "CURRENT").write_text("v000003\n", encoding="ascii")
    pyarrow = pytest.importorskip("pyarrow", reason="the pipeline is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), place / "part-0.parquet")


@pytest.fixture(scope="session")
def settings(enterprise: Enterprise, tables: Path) -> ConsoleSettings:
    """As ``mqis console --run`` has them; tests change what they are about."""
    return ConsoleSettings(
        Places(enterprise.home),
        tables,
        port=0,
        live_every_s=0.2,
        sample_every_s=0.2,
        logins_per_address=1000,
        logins_per_name=1000,
        requests_per_address=100_000,
    )


@pytest.fixture(scope="session")
def console(settings: ConsoleSettings) -> Iterator[str]:
    with running_console(settings) as url:
        yield url


@pytest.fixture
def visitor(console: str) -> Visitor:
    """Anonymous, with the token."""
    return Visitor(console)


@pytest.fixture
def administrator(console: str) -> Visitor:
    made = Visitor(console)
    assert made.log_in().status == 303
    return made
