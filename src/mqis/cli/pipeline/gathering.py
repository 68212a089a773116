"""The inputs that a run directory gives: nobody has to export stores or list journals by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from mqis.cli.output import cell, error_console
from mqis.cli.pipeline.options import InputOptions
from mqis.config.nodes import load_nodes
from mqis.enterprise.gather import gather
from mqis.texts import counted

_NOTHING = "nothing to read: give --run (the directory of 'mqis up'), "


def gathered(inputs: InputOptions, run: Path | None) -> InputOptions:
    """The given inputs or, with ``--run``, copies of the journals and exports of all servers."""
    if run is None:
        if not (inputs.journals or inputs.exports or inputs.captures):
            raise typer.BadParameter(f"{_NOTHING}--journals, --exports or --captures")
        return inputs
    if inputs.journals or inputs.exports:
        raise typer.BadParameter(
            "--run reads all journals and directories of the run directory; leave --journals and "
            "--exports out, or leave --run out and name the tables with --tables"
        )
    found = gather(run)
    target = error_console()
    for problem in found.problems:
        target.print(cell(f"warning: {problem}", "yellow"), soft_wrap=True)
    servers = counted(len(found.servers), "server")
    target.print(cell(f"{run}: read {servers} of {found.enterprise}"), soft_wrap=True)
    journals = "" if found.journals is None else _one(found.journals)
    return replace(inputs, journals=journals, exports=_one(found.exports))


def journals_of(run: Path | None) -> str:
    """The journals themselves, which a stream follows while servers write them."""
    if run is None:
        raise typer.BadParameter(f"{_NOTHING}or --journals")
    return ",".join(_one(Path(node.journal)) for node in load_nodes(run) if node.journal)


def _one(path: Path) -> str:
    """The path as one of a list that commas separate."""
    if "," in str(path):
        raise typer.BadParameter(f"{path}: a comma separates paths; rename the directory")
    return str(path)
