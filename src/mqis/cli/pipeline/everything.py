"""All tables for which there is input, and what is printed about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mqis.cli.output import say
from mqis.cli.pipeline.options import InputOptions
from mqis.cli.pipeline.output import (
    say_audited,
    say_conversations,
    say_hygiene,
    say_ingested,
    say_lag,
    stored_rows,
)

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore


def everything(opened: TableStore, inputs: InputOptions) -> dict[str, Any]:
    """Builds all tables; returns their results by name, and the rows of ``divergence``."""
    from mqis.pipeline import runs  # noqa: PLC0415
    from mqis.pipeline.building import TableBuilder  # noqa: PLC0415

    read = runs.ingest(opened, inputs.journals, inputs.exports, inputs.captures)
    done: dict[str, Any] = {"ingest": asdict(read)}
    with TableBuilder(opened) as shared:
        if opened.has("objects"):
            done["audit"] = asdict(runs.audit(opened, shared))
            done["hygiene"] = runs.hygiene(opened, shared)
            done["routes"] = asdict(runs.routes(opened, shared))
            done["what_if"] = asdict(runs.what_if(opened, shared))
        if opened.has("records"):
            done["history"] = asdict(runs.history(opened, shared))
            done["lag"] = asdict(runs.lag(opened, shared))
        if opened.has("packets"):
            done["conversations"] = runs.conversations(opened, shared)
        runs.others(shared)
    return {**done, "divergence": stored_rows(opened, "divergence") if "audit" in done else []}


def say_everything(done: dict[str, Any], directory: str) -> None:
    """Prints a summary of the results."""
    say_ingested(done["ingest"], directory)
    if "audit" in done:
        say_audited(done["audit"], done["divergence"])
        say_hygiene(done["hygiene"])
        say("tables hygiene, routes, what_if")
    if "lag" in done:
        say_lag(done["lag"])
    if "conversations" in done:
        say_conversations(done["conversations"])
