"""Questions in SQL about the tables, in words: only queries, and of their result only so much.

Each table is a view of the same name, made by ``transforms.words``. A statement that changes
something does not fit into the brackets that it is put into. A query that would call Java or start
a program is refused after Spark has analysed it, whatever its spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.readable import readable_tables
from mqis.pipeline.tables import TableStore
from mqis.wire.errors import MqisError

MOST_TEXT = 100_000
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
#: Nodes of a plan that run other code than Spark's own, and what they are.
_FOREIGN = {
    "reflect(": "calls of Java methods",
    "java_method(": "calls of Java methods",
    "ScriptTransformation": "programs (TRANSFORM ... USING)",
}
_FILES = "spark.sql.runSQLOnFiles"
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\.?")
_CLASS = re.compile(r"^\[[\w.]+\]\s*")
_UNKNOWN = re.compile(r"TABLE_OR_VIEW_NOT_FOUND.*?`([^`]*)`")


@dataclass(frozen=True, slots=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    #: The result has more rows than were asked for.
    more: bool


def ask(tables: TableStore, query: str, limit: int) -> Answer:
    """Answers a query with at most ``limit`` rows; raises ``MqisError`` with one line."""
    text = query.strip().rstrip(";").rstrip()
    if not text or len(text) > MOST_TEXT:
        raise MqisError(f"give a query of 1 to {MOST_TEXT:,} characters")
    # Table names are ASCII, and SQL ignores case.
    mentioned = sorted(set(_WORD.findall(text.lower())) & set(tables.names()))
    made = readable_tables(tables, mentioned)
    for name, frame in made.items():
        frame.createOrReplaceTempView(name)
    try:
        return _answer(tables, text, limit)
    except SPARK_ERRORS as error:
        raise MqisError(_reason(tables, error)) from None
    finally:
        for name in made:
            tables.session.catalog.dropTempView(name)


def _answer(tables: TableStore, text: str, limit: int) -> Answer:
    session = tables.session
    files = session.conf.get(_FILES)
    session.conf.set(_FILES, "false")  # FROM parquet.`...` would read any file
    try:
        # Only a query may stand in brackets. It may end in a comment, hence the line end.
        frame = session.sql(f"(\n{text}\n)")
        _refuse_foreign(frame)
        _refuse_twins(frame.columns)
        found = frame.limit(limit + 1).collect()
    finally:
        session.conf.set(_FILES, files or "true")
    rows = tuple(row.asDict(recursive=True) for row in found[:limit])
    return Answer(tuple(frame.columns), rows, len(found) > limit)


def _refuse_foreign(frame: DataFrame) -> None:
    plan = _plan(frame)
    for node, what in _FOREIGN.items():
        if node in plan:
            raise MqisError(f"a query here only reads tables; {what} are refused")


def _refuse_twins(columns: Sequence[str]) -> None:
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise MqisError(f"several columns are named {twice[0]!r}; name them with AS")


def _plan(frame: Any) -> str:
    """The analysed plan as text; with Spark Connect, all plans."""
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.queryExecution().analyzed().toString())
    return str(frame._explain_string(extended=True))


def _reason(tables: TableStore, error: BaseException) -> str:
    text = " ".join(str(error).split())
    if unknown := _UNKNOWN.search(text):
        names = ", ".join(tables.names()) or "none; run 'mqis pipeline run' first"
        return f"there is no table {unknown[1]!r}; there are {names}"
    return _CLASS.sub("", _STATE.sub("", explained(error))).strip()
