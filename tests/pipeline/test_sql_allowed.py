"""The allow-list of ``mqis pipeline sql``: attacks are refused by name, ordinary questions pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline import allowedsql
from mqis.pipeline.sql import ask
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from tests.cli.commands import run
from tests.docs.documents import text_of

_JAVA = "('java.lang.System', 'setProperty', 'mqis.hacked', 'yes')"
#: Spark shortens the text of a plan after 25 columns.
_WIDE = ", ".join(f"{number} AS c{number}" for number in range(40))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableDirectory:
    """Tables with the columns that the documents ask for."""
    made = TableDirectory(spark, tmp_path_factory.mktemp("asked"))
    rows = spark.sql("""
        SELECT * FROM VALUES
        ('a', 'create', timestamp'2026-01-02 03:04:05', 'app\\orders', 2, map('label', 'x')),
        ('a', 'update', timestamp'2026-01-02 04:04:05', 'app\\orders', 3, map('label', 'y')),
        ('b', 'create', timestamp'2026-01-03 03:04:05', 'app\\other', 5, map('label', 'z'))
        AS t(origin, operation, time, path, size, properties)
    """)
    made.write("changes", rows)
    made.write("lag", spark.createDataFrame([("a", 2.5), ("b", 0.5)], "server string, p95 double"))
    made.write(
        "divergence",
        spark.createDataFrame(
            [("a", "queue", "app\\orders", "lost")],
            "server string, type string, path string, cause string",
        ),
    )
    return made


@pytest.fixture(autouse=True)
def _nothing_ran(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """Checks that Java was not called, no file was written and no setting changed."""
    (tmp_path / "secret").write_text("the password")
    yield
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.java.lang.System.getProperty("mqis.hacked") is None
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert spark.conf.get("spark.sql.variable.substitute") == "true"
    assert spark.conf.get("spark.mqis.hacked", None) is None


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"SELECT {_WIDE}, reflect{_JAVA} AS r", "function reflect"),
        (f"SELECT {_WIDE}, java_method{_JAVA} AS r", "function java_method"),
        (f"SELECT {_WIDE}, Try_Reflect{_JAVA} AS r FROM lag", "function try_reflect"),
        (f"SELECT `reflect`{_JAVA}", "function reflect"),
        (f"SELECT system.builtin.reflect{_JAVA}", "function system.builtin.reflect"),
        (f"SELECT IDENTIFIER('ref' || 'lect'){_JAVA}", "ExpressionWithUnresolvedIdentifier"),
        (f"SELECT * FROM IDENTIFIER(java_method{_JAVA})", "PlanWithUnresolvedIdentifier"),
        (f"SELECT 1 FROM lag WHERE server IN (SELECT reflect{_JAVA})", "function reflect"),
        (f"SELECT (SELECT max(reflect{_JAVA}) FROM lag)", "function reflect"),
        (f"WITH a AS (WITH b AS (SELECT reflect{_JAVA}) FROM b) FROM a", "function reflect"),
        (f"SELECT sum(p95) OVER (ORDER BY reflect{_JAVA}) FROM lag", "function reflect"),
        (f"SELECT p95 FROM lag ORDER BY reflect{_JAVA}", "function reflect"),
        (f"SELECT p95 FROM lag LIMIT length(reflect{_JAVA})", "function reflect"),
        (f"SELECT * FROM range(length(reflect{_JAVA}))", "function reflect"),
        (f"SELECT * FROM lag LATERAL VIEW explode(array(reflect{_JAVA})) v", "function reflect"),
        ("SELECT * FROM lag LATERAL VIEW python_rows(server) v", "table function python_rows"),
        (f"SELECT * FROM lag, LATERAL (SELECT reflect{_JAVA})", "function reflect"),
        (f"SELECT transform(array(1), x -> reflect{_JAVA})", "function reflect"),
        (f"VALUES (reflect{_JAVA})", "function reflect"),
        (f"SELECT * FROM lag JOIN lag AS b ON reflect{_JAVA} = 'x'", "function reflect"),
        (f"SELECT count(*) FILTER (WHERE reflect{_JAVA} = 'x') FROM lag", "function reflect"),
        (f"SELECT 1 FROM lag GROUP BY CUBE(reflect{_JAVA})", "function reflect"),
        (f"SELECT CASE WHEN true THEN reflect{_JAVA} END", "function reflect"),
        ("SELECT * FROM mqis_tvf(1)", "table function mqis_tvf"),
        ("SELECT input_file_name() FROM lag", "function input_file_name"),
        ("SELECT current_user()", "function current_user"),
        ("SELECT from_protobuf(p95, 'A', '{there}/secret') FROM lag", "function from_protobuf"),
        ("SELECT xpath('<a/>', 'a')", "function xpath"),
        ("SELECT * FROM parquet.`{there}/secret`", "no table 'parquet."),
        ("SELECT * FROM text.`{there}/secret`", "no table 'text."),
        ("SELECT * FROM lag WITH (path = '{there}/secret')", "an option of a table"),
        ("SELECT * FROM spark_catalog.default.lag", "no table 'spark_catalog.default.lag'"),
        ("WITH elsewhere AS (SELECT * FROM elsewhere) SELECT 1", "no table 'elsewhere'"),
        ("SELECT * FROM elsewhere, (WITH elsewhere AS (SELECT 1) SELECT 2)", "table 'elsewhere'"),
        ("SET spark.mqis.hacked = yes", "SetCommand"),
        ("RESET", "ResetCommand"),
        ("CREATE TEMPORARY FUNCTION f AS 'java.lang.System'", "CreateFunction"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "CreateViewCommand"),
        ("DROP VIEW lag", "Drop"),
        ("ADD JAR '{there}/x.jar'", "AddJarsCommand"),
        ("CACHE TABLE lag", "CacheTable"),
        ("SHOW TABLES", "ShowTables"),
        ("DESCRIBE lag", "Describe"),
        ("EXPLAIN SELECT 1", "ExplainCommand"),
        ("INSERT OVERWRITE DIRECTORY '{there}/out' USING csv SELECT 1", "InsertIntoDir"),
        ("FROM lag INSERT OVERWRITE DIRECTORY '{there}/out' USING csv SELECT 1", "InsertIntoDir"),
        ("SELECT TRANSFORM (server) USING 'touch {there}/out' FROM lag", "ScriptTransformation"),
        ("BEGIN SELECT 1; DROP VIEW lag; END", "CompoundBody"),
        ("SELECT /*+ REPARTITION(100000) */ * FROM lag", "UnresolvedHint"),
        ("SELECT * FROM lag VERSION AS OF 1", "RelationTimeTravel"),
        ("SELECT :name", "NamedParameter"),
    ],
)
@pytest.mark.req("SEC-21-01")
def test_what_is_not_listed_is_refused_by_its_name(
    tables: TableDirectory, tmp_path: Path, query: str, what: str
) -> None:
    with pytest.raises(MqisError, match=re.escape(what)) as caught:
        ask(tables, query.replace("{there}", str(tmp_path)), 5)
    assert "the password" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.req("SEC-21-01")
def test_the_attack_through_the_command(tables: TableDirectory) -> None:
    """A secret of the environment, read by Java behind more columns than Spark prints."""
    query = f"SELECT {_WIDE}, reflect('java.lang.System', 'getenv', 'PATH') AS secret"
    place = ["--tables", str(tables.directory)]
    refused = run("pipeline", "sql", query, *place)
    assert isinstance(refused.exception, MqisError)
    assert "the function reflect is not allowed" in str(refused.exception)
    assert "/bin" not in refused.output
    passed = run("pipeline", "sql", f"SELECT {_WIDE}", *place)
    assert passed.exit_code == 0, passed.output


@pytest.mark.req("SEC-21-02")
@pytest.mark.parametrize(
    "variable", ["env:PATH", "system:java.home", "spark.app.name", "hiveconf:spark.master"]
)
def test_the_environment_stays_out_of_queries(tables: TableDirectory, variable: str) -> None:
    text = "${" + variable + "}"
    found = ask(tables, f"SELECT '{text}' AS value", 1)
    assert [tuple(row.values()) for row in found.rows] == [(text,)]


@pytest.mark.req("SEC-21-02")
def test_the_environment_names_no_table(tables: TableDirectory) -> None:
    with pytest.raises(MqisError) as caught:
        ask(tables, "SELECT * FROM lag WHERE server = ${env:PATH}", 1)
    assert "/bin" not in str(caught.value)


def test_a_query_with_too_many_parts(
    tables: TableDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowedsql, "MOST_OBJECTS", 500)
    with pytest.raises(MqisError, match="more than 500 parts"):
        ask(tables, "SELECT " + " + ".join("1" * 400) + " AS n", 1)


def _documented() -> list[str]:
    """The queries of the page, from its commands."""
    lines = (line for line in text_of("pipeline.md").splitlines() if "mqis pipeline sql" in line)
    words = (shlex.split(line, comments=True) for line in lines if line.startswith("$ "))
    return [query for line in words for query in line if query.startswith("SELECT")]


ORDINARY = [
    "SELECT * FROM changes ORDER BY time DESC LIMIT 2 OFFSET 1",
    "SELECT DISTINCT origin FROM changes",
    "SELECT origin, count(*) AS n, min(time) AS first FROM changes GROUP BY origin HAVING n > 1",
    "SELECT count(DISTINCT path) AS p, count(*) FILTER (WHERE size > 2) AS big FROM changes",
    "SELECT c.path, l.p95 FROM changes c JOIN lag l ON c.origin = l.server",
    "SELECT c.path, l.p95 FROM changes c LEFT JOIN lag l ON c.origin = l.server AND l.p95 > 1",
    "SELECT server, type FROM lag FULL OUTER JOIN divergence USING (server)",
    "SELECT * FROM lag WHERE NOT EXISTS (SELECT 1 FROM changes WHERE origin = server)",
    "SELECT * FROM lag LEFT ANTI JOIN divergence USING (server)",
    "SELECT a.server FROM lag a CROSS JOIN lag b WHERE a.p95 <= b.p95",
    "SELECT * FROM changes WHERE origin IN (SELECT server FROM lag WHERE p95 > 1)",
    "SELECT path, (SELECT max(p95) FROM lag) AS worst FROM changes",
    "SELECT path, row_number() OVER (PARTITION BY path ORDER BY time DESC) AS r FROM changes",
    (
        "SELECT time, sum(size) OVER (ORDER BY time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) s "
        "FROM changes"
    ),
    "SELECT time, lag(time) OVER w AS before FROM changes WINDOW w AS (ORDER BY time)",
    (
        "WITH n AS (SELECT origin, count(*) AS n FROM changes GROUP BY 1), m(x) AS (SELECT max(n) "
        "FROM n) SELECT * FROM n, m WHERE n = x"
    ),
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT * FROM t",
    "SELECT date_trunc('hour', time) AS hour, count(*) AS n FROM changes GROUP BY ALL ORDER BY ALL",
    "SELECT extract(hour FROM time) AS h, time - INTERVAL 1 HOUR t, date(time) AS d FROM changes",
    "SELECT datediff(current_date(), to_date(time)) > 0 AS old, year(time) AS y FROM changes",
    "SELECT window(time, '1 day').start AS day, count(*) AS n FROM changes GROUP BY 1",
    (
        "SELECT * FROM (SELECT origin, operation, size FROM changes) PIVOT (sum(size) FOR "
        "operation IN ('create', 'update' AS updates))"
    ),
    "SELECT * FROM (SELECT 1 AS a, 2 AS b) UNPIVOT (v FOR k IN (a, b))",
    (
        "SELECT origin, operation, sum(size) AS s, grouping(origin) g FROM changes "
        "GROUP BY ROLLUP(origin, operation)"
    ),
    "SELECT origin, sum(size) AS s FROM changes GROUP BY GROUPING SETS ((origin), ())",
    (
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY p95) AS m, avg(p95) a, stddev(p95) s "
        "FROM lag"
    ),
    "SELECT key, value FROM changes LATERAL VIEW explode(properties) p AS key, value",
    "SELECT t.path, e.k FROM changes t, LATERAL explode(map_keys(t.properties)) AS e(k)",
    "SELECT server FROM lag UNION SELECT origin FROM changes EXCEPT SELECT 'z'",
    "SELECT server FROM lag INTERSECT SELECT origin FROM changes",
    (
        "SELECT CASE WHEN size > 2 THEN 'big' ELSE 'small' END AS s, if(size > 2, 1, 0) i, "
        "coalesce(path, '-') p, CAST(size AS string) t, size::double d FROM changes"
    ),
    (
        "SELECT upper(path) u, substring(path, 1, 3) s, split(path, '\\\\\\\\')[0] m, "
        "path RLIKE 'ord' r, path ILIKE 'APP%' l, trim(BOTH 'a' FROM path) t, a.x FROM changes, "
        "(SELECT struct(1 AS x) AS a)"
    ),
    "SELECT transform(array(1, 2), x -> x + 1) AS t, aggregate(array(1, 2), 0, (a, x) -> a + x) s",
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(n, t) WHERE n % 2 = 1 AND NOT t IS NULL",
    "SELECT * EXCEPT (time) FROM changes",
    "SELECT id FROM range(3)",
    "SELECT listagg(server, ', ') WITHIN GROUP (ORDER BY server) AS servers FROM lag",
    "FROM lag |> WHERE p95 > 1 |> SELECT server",
]


@pytest.mark.parametrize("query", [*_documented(), *ORDINARY])
def test_ordinary_questions_are_answered(tables: TableDirectory, query: str) -> None:
    found = ask(tables, query, 10)
    assert found.columns
    if "NOT EXISTS" not in query:
        assert found.rows


def test_the_documents_have_questions() -> None:
    assert len(_documented()) >= 3
