"""What the pipeline has left behind."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

from mqis.services.console.pipeline import pipeline_page, report_file, table_rows
from mqis.services.console.places import PlacesError
from mqis.web.asking import Asked
from mqis.web.guard import REPORT_POLICY


def show(asked: Asked) -> Response:
    directory = asked.console.settings.tables
    if directory is None or not directory.is_dir():
        return asked.page("nothing.html", title="Pipeline", text=_none(directory))
    return asked.page("pipeline.html", found=pipeline_page(directory))


def table(asked: Asked) -> Response:
    name = asked.path("name")
    directory = _directory(asked)
    rows = table_rows(directory, name)
    if rows is None:
        raise PlacesError(f"there is no table {name!r} that could be read")
    return asked.page("table.html", name=name, found=rows)


def report(asked: Asked) -> Response:
    path = report_file(_directory(asked))
    if path is None:
        raise PlacesError("there is no report: 'mqis pipeline report' writes it")
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return Response(path.read_bytes(), 200, headers, "text/html; charset=utf-8")


def _directory(asked: Asked) -> Path:
    directory = asked.console.settings.tables
    if directory is None or not directory.is_dir():
        raise PlacesError(_none(directory))
    return directory


def _none(directory: Path | None) -> str:
    if directory is None:
        return "No tables were named: --tables says where 'mqis pipeline' has written them."
    return f"{directory} is not there: 'mqis pipeline run --tables {directory}' makes it."
