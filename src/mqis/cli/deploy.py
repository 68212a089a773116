"""``mqis deploy``: prints the files that other programs need to run and watch servers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import mqis
from mqis.cli.output import print_note


class Deployed(StrEnum):
    """The files by their names on the command line."""

    SYSTEMD = "systemd"
    CONTAINER = "container"
    CONTROLLER = "controller"
    COMPOSE = "compose"
    PROMETHEUS = "prometheus"
    ALERTS = "alerts"
    GRAFANA = "grafana"


FILES = {
    Deployed.SYSTEMD: "mqis@.service",
    Deployed.CONTAINER: "Containerfile",
    Deployed.CONTROLLER: "controller.sh",
    Deployed.COMPOSE: "compose.yml",
    Deployed.PROMETHEUS: "prometheus/prometheus.yml",
    Deployed.ALERTS: "prometheus/alerts.yml",
    Deployed.GRAFANA: "grafana/mqis.json",
}
#: What builds an image, from files that an installed package does not have.
_FROM_A_CLONE = (Deployed.CONTAINER, Deployed.COMPOSE)


def deploy(
    file: Annotated[
        Deployed,
        typer.Argument(
            help="A unit of systemd; a Containerfile, and the script in it; a compose file of an "
            "enterprise with its monitoring; the configuration of Prometheus; its alert rules; a "
            "dashboard of Grafana.",
            show_default=False,
        ),
    ],
) -> None:
    """Print a file that runs or watches servers; redirect the output to where it belongs."""
    if file in _FROM_A_CLONE:
        print_note(
            "it builds the image from the sources, so it works in a clone of the repository only, "
            f"as deploy/{FILES[file]}"
        )
    typer.echo((directory() / FILES[file]).read_text("utf-8"), nl=False)


def directory() -> Path:
    """The directory of the files: in the package, or beside ``src`` in a checkout."""
    package = Path(mqis.__file__).parent
    installed = package / "deploy"
    return installed if installed.is_dir() else package.parents[1] / "deploy"
