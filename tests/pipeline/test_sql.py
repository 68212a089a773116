"""Questions in SQL: answered in words, only queries, only so many rows, one line if wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline.sql import ask
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from tests.cli.commands import run


@pytest.fixture(scope="module")
def few(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableDirectory:
    """Two small tables."""
    made = TableDirectory(spark, tmp_path_factory.mktemp("few"))
    rows = [("a", bytearray(range(16)), 2), ("b", None, 1), ("c", None, None)]
    made.write("records", spark.createDataFrame(rows, "server string, object_id binary, kind int"))
    made.write("lag", spark.createDataFrame([("a", 2.5)], "server string, p95_ms double"))
    return made


def test_an_answer_in_words(few: TableDirectory) -> None:
    text = "SELECT r.server, object_id, kind, p95_ms FROM Records r LEFT JOIN lag USING (server)"
    found = ask(few, f"{text} ORDER BY server; ", 10)
    assert found.columns == ("server", "object_id", "kind", "p95_ms")
    assert [tuple(row.values()) for row in found.rows] == [
        ("a", "03020100-0504-0706-0809-0a0b0c0d0e0f", "change", 2.5),
        ("b", None, "message", None),
        ("c", None, None, None),
    ]
    assert not found.more
    assert not any(few.session.catalog.tableExists(name) for name in few.names())


def test_only_so_many_rows(few: TableDirectory) -> None:
    found = ask(few, "WITH r AS (SELECT server FROM records) SELECT * FROM r -- all", 2)
    assert len(found.rows) == 2
    assert found.more
    assert not ask(few, "SELECT id FROM range(2)", 2).more


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELEC 1", "Syntax error at or near"),
        ("SELECT * FROM nothing", "there is no table 'nothing'; there are lag, records"),
        ("SELECT nothing FROM lag", "nothing"),
        ("SELECT server, server FROM lag", "several columns are named 'server'"),
        ("", "give a query"),
        ("SELECT 1" + " " * 100_001 + "x", "give a query of 1 to 100,000 characters"),
        ("SELECT 1/0", "ivision by zero"),
    ],
)
def test_a_wrong_query_is_one_line(few: TableDirectory, query: str, reason: str) -> None:
    with pytest.raises(MqisError, match=reason) as caught:
        ask(few, query, 5)
    assert "\n" not in str(caught.value)
    assert "SQLSTATE" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "DROP VIEW lag",
        "CREATE TABLE x AS SELECT 1",
        "INSERT OVERWRITE DIRECTORY '{there}/out' USING csv SELECT 1",
        "SET spark.sql.ansi.enabled = false",
        "SELECT 1); DROP VIEW lag; SELECT (1",
        "SELECT * FROM lag) INSERT OVERWRITE DIRECTORY '{there}/out' USING csv SELECT (1",
        "SELECT * FROM text.`{there}/secret`",
        "SELECT reflect('java.lang.System', 'setProperty', 'mqis.hacked', 'yes')",
        "SELECT java_method('java.lang.System', 'setProperty', 'mqis.hacked', 'yes')",
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'setProperty', 'mqis.hacked', 'y')",
        "SELECT TRANSFORM (server) USING 'touch {there}/out' AS (x string) FROM lag",
        "FROM lag MAP server USING 'touch {there}/out' AS (x string)",
    ],
)
@pytest.mark.req("SEC-12-11")
def test_a_query_only_reads_tables(few: TableDirectory, tmp_path: Path, query: str) -> None:
    (tmp_path / "secret").write_text("the password")
    with pytest.raises(MqisError) as caught:
        ask(few, query.replace("{there}", str(tmp_path)), 5)
    assert "the password" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    jvm = few.session.sparkContext._jvm
    assert jvm is not None
    assert jvm.java.lang.System.getProperty("mqis.hacked") is None


def test_the_command(few: TableDirectory) -> None:
    place = ["--tables", str(few.directory)]
    shown = run("pipeline", "sql", "SELECT server, kind FROM records", "-n", "1", *place)
    assert shown.exit_code == 0, shown.output
    assert "change" in shown.stdout
    assert shown.stderr == "note: only 1 row, and there are more: --limit shows them\n"
    rows = run("pipeline", "sql", "SELECT * FROM lag", "--json", *place)
    assert json.loads(rows.stdout) == [{"server": "a", "p95_ms": 2.5}]
    listed = json.loads(run("pipeline", "sql", "--json", *place).stdout)
    assert listed == {"lag": ["server", "p95_ms"], "records": ["server", "object_id", "kind"]}
    wrong = run("pipeline", "sql", "DROP VIEW lag", *place).exception
    assert isinstance(wrong, MqisError)


def test_rows_are_shown_in_words_and_as_stored(few: TableDirectory) -> None:
    place = ["records", "-n", "2", "--tables", str(few.directory)]
    words = run("pipeline", "show", *place).stdout
    assert [line.split()[-1] for line in words.splitlines()[2:]] == ["change", "message"]
    stored = run("pipeline", "show", "--raw", *place).stdout
    assert [line.split()[-1] for line in stored.splitlines()[2:]] == ["2", "1"]
    for_machines = json.loads(run("pipeline", "show", "--json", *place).stdout)
    assert [row["kind"] for row in for_machines] == [2, 1]


def test_ctrl_c_ends_a_command_with_one_line(
    few: TableDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mqis.pipeline.sql.ask", interrupt)
    ended = run("pipeline", "sql", "SELECT 1", "--tables", str(few.directory))
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert ended.stderr == "mqis: interrupted; each table is either as it was or new\n"
