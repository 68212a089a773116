"""``mqis pipeline init``: the tables as a Spark Declarative Pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import print_json, say
from mqis.cli.pipeline.opening import check_spark
from mqis.cli.pipeline.options import InputOptions


@spread
def init(
    directory: Annotated[Path, typer.Argument(help="The directory to write.", show_default=False)],
    *,
    inputs: InputOptions,
    schema: Annotated[
        str, typer.Option(help="The schema that the tables are made in; it has to exist.")
    ] = "default",
    json: JsonOption = False,
) -> None:
    """Write a project for Spark's own 'spark-pipelines run', which builds the same tables."""
    check_spark()
    from mqis.pipeline.inputs import PipelineInputs  # noqa: PLC0415
    from mqis.pipeline.project import COMMAND, write_project  # noqa: PLC0415

    chosen = PipelineInputs(inputs.journals, inputs.exports, inputs.captures)
    files = [str(path) for path in write_project(directory, chosen, schema)]
    if json:
        print_json({"files": files})
    else:
        say(f"wrote {', '.join(files)}")
        say(f"build the tables with: cd {directory} && {COMMAND}")
