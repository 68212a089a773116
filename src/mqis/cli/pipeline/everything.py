"""All jobs for which there is input, one after the other, and what they print."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqis.cli.output import say
from mqis.cli.pipeline.options import InputOptions
from mqis.cli.pipeline.output import (
    divergence_rows,
    say_audited,
    say_conversations,
    say_hygiene,
    say_ingested,
    say_lag,
)

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableDirectory


def everything(opened: TableDirectory, inputs: InputOptions) -> dict[str, Any]:
    """Runs the jobs; returns their results by name, and the rows of ``divergence``."""
    from mqis.pipeline.jobs.audit import audit  # noqa: PLC0415
    from mqis.pipeline.jobs.conversations import conversations  # noqa: PLC0415
    from mqis.pipeline.jobs.history import history  # noqa: PLC0415
    from mqis.pipeline.jobs.hygiene import hygiene  # noqa: PLC0415
    from mqis.pipeline.jobs.ingest import ingest  # noqa: PLC0415
    from mqis.pipeline.jobs.progress import lag  # noqa: PLC0415
    from mqis.pipeline.jobs.routes import routes, what_if  # noqa: PLC0415

    done: dict[str, Any] = {
        "ingest": asdict(ingest(opened, inputs.journals, inputs.exports, inputs.captures))
    }
    if opened.has("objects"):
        done["audit"] = asdict(audit(opened))
        done["hygiene"] = hygiene(opened)
        done["routes"] = asdict(routes(opened))
        done["what_if"] = asdict(what_if(opened))
    if opened.has("records"):
        done["history"] = asdict(history(opened))
        done["lag"] = asdict(lag(opened))
    if opened.has("packets"):
        done["conversations"] = conversations(opened)
    return {**done, "divergence": divergence_rows(opened) if "audit" in done else []}


def say_everything(done: dict[str, Any], directory: Path) -> None:
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
