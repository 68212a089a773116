"""Writes the project of a Spark Declarative Pipeline, which ``spark-pipelines run`` runs."""

from __future__ import annotations

from pathlib import Path

from mqis.pipeline.inputs import PipelineInputs
from mqis.pipeline.locations import input_places, local_path, write_output
from mqis.pipeline.session import SETTINGS
from mqis.wire.errors import MqisError

SPEC, DEFINITION, DEFAULTS = "spark-pipeline.yml", "tables.py", "conf/spark-defaults.conf"
#: How to run a project, in its directory.
COMMAND = "SPARK_CONF_DIR=conf spark-pipelines run"


def write_project(directory: Path, inputs: PipelineInputs, schema: str) -> list[Path]:
    """Writes its files; raises ``MqisError`` if one exists already."""
    directory = local_path(directory)
    inputs.check()
    files = {
        directory / SPEC: _spec(directory, schema),
        directory / DEFINITION: _definition(inputs),
        directory / DEFAULTS: _DEFAULTS,
    }
    for path in files:
        if path.exists():
            raise MqisError(f"{path} exists already; remove it, or choose another directory")
    for path, text in files.items():
        write_output(path, text.encode())
    return list(files)


def _spec(directory: Path, schema: str) -> str:
    settings = "".join(f'  {key}: "{value}"\n' for key, value in SETTINGS.items())
    return (
        f"# Run it here with: {COMMAND}\n"
        "name: mqis\n"
        f"storage: {(directory / 'state').absolute().as_uri()}\n"
        f"schema: {schema}\n"
        "libraries:\n"
        "  - glob:\n"
        f"      include: {DEFINITION}\n"
        f"configuration:\n{settings}"
    )


#: What has to be set before Spark starts; not every ``--conf`` of ``spark-pipelines`` gets there.
_DEFAULTS = """\
# Hive keeps the tables between runs; any other catalogue of yours does, too.
spark.sql.catalogImplementation      hive
# spark-pipelines starts a Spark Connect server, which would listen on all addresses.
spark.connect.grpc.binding.address   127.0.0.1
spark.driver.bindAddress             127.0.0.1
spark.driver.host                    127.0.0.1
spark.ui.enabled                     false
"""


def _definition(inputs: PipelineInputs) -> str:
    named = {name: getattr(inputs, name) for name in ("journals", "exports", "captures")}
    given = ", ".join(f"{name}={_absolute(value)!r}" for name, value in named.items() if value)
    return (
        "from mqis.pipeline.declarative import PipelineInputs, define\n\n"
        f"define(spark, PipelineInputs({given}))  # noqa: F821 - Spark sets the session\n"
    )


def _absolute(places: str) -> str:
    """The places, from wherever the project is run."""
    return ",".join(
        str(place.absolute() if isinstance(place, Path) else place)
        for place in input_places(places)
    )
