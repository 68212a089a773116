"""Questions in SQL about the tables, in words: only queries, and of their result only so much.

Each table is a view of the same name, made by ``transforms.words``. Spark parses the query, and
``allowedsql`` checks the result before Spark does anything else with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqis.pipeline.allowedsql import UnknownTable, check_parsed
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.readable import readable_tables
from mqis.pipeline.tables import TableStore
from mqis.wire.errors import MqisError

MOST_TEXT = 100_000
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
#: Puts the environment and Java's properties into queries: ${env:HOME}.
_SUBSTITUTION = "spark.sql.variable.substitute"
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\.?")
_CLASS = re.compile(r"^\[[\w.]+\]\s*")


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
        return _answer(tables.session, text, limit, made)
    except UnknownTable as error:
        names = ", ".join(tables.names()) or "none; run 'mqis pipeline run' first"
        raise MqisError(f"there is no table {str(error)!r}; there are {names}") from None
    except SPARK_ERRORS as error:
        raise MqisError(_reason(error)) from None
    finally:
        for name in made:
            tables.session.catalog.dropTempView(name)


def _answer(session: Any, text: str, limit: int, views: Collection[str]) -> Answer:
    substitution = session.conf.get(_SUBSTITUTION)
    session.conf.set(_SUBSTITUTION, "false")
    try:
        check_parsed(_parsed(session, text), views)
        frame = session.sql(text)
        _refuse_twins(frame.columns)
        found = frame.limit(limit + 1).collect()
    finally:
        session.conf.set(_SUBSTITUTION, substitution)
    rows = tuple(row.asDict(recursive=True) for row in found[:limit])
    return Answer(tuple(frame.columns), rows, len(found) > limit)


def _parsed(session: Any, text: str) -> Any:
    if not hasattr(session, "_jsparkSession"):
        raise MqisError(
            "through Spark Connect a query cannot be checked before it runs; ask without --remote"
        )
    return session._jsparkSession.sessionState().sqlParser().parsePlan(text)


def _refuse_twins(columns: Sequence[str]) -> None:
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise MqisError(f"several columns are named {twice[0]!r}; name them with AS")


def _reason(error: BaseException) -> str:
    return _CLASS.sub("", _STATE.sub("", explained(error))).strip()
