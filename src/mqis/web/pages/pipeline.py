"""The pipeline's tables and report."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import FileResponse, Response

from mqis.views.console.pipeline import pipeline_page, report_file, table_rows
from mqis.views.console.places import PlacesError
from mqis.web.asking import PageRequest
from mqis.web.guard import REPORT_POLICY


def show(asked: PageRequest) -> Response:
    directory = asked.console.settings.tables
    if directory is None or not directory.is_dir():
        return asked.page("nothing.html", title="Pipeline", text=_missing_tables(directory))
    found = pipeline_page(directory)
    return asked.page("pipeline.html", found=found, administrator=asked.sees_everything())


def table(asked: PageRequest) -> Response:
    name = asked.path("name")
    if not asked.sees_everything():
        return _refuse_rows(asked)
    directory = _directory(asked)
    rows = table_rows(directory, name)
    if rows is None:
        raise PlacesError(f"table {name!r} does not exist or cannot be read")
    return asked.page("table.html", name=name, found=rows)


def report(asked: PageRequest) -> Response:
    if not asked.sees_everything():
        return _refuse_rows(asked)
    path = report_file(_directory(asked))
    if path is None:
        raise PlacesError("there is no report yet: 'mqis pipeline report' writes it")
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return FileResponse(path, headers=headers, media_type="text/html; charset=utf-8")


def _refuse_rows(asked: PageRequest) -> Response:
    """Refuses the page: tables and report have objects of all owners, without access checks."""
    text = "Only administrators may see the rows of tables and the report: log in as one, or start "
    text += "the console with --as administrator."
    return asked.error(403, "For administrators", text)


def _directory(asked: PageRequest) -> Path:
    directory = asked.console.settings.tables
    if directory is None or not directory.is_dir():
        raise PlacesError(_missing_tables(directory))
    return directory


def _missing_tables(directory: Path | None) -> str:
    if directory is None:
        return "No tables were named: give the directory of 'mqis pipeline' with --tables."
    return f"{directory} does not exist: 'mqis pipeline run --tables {directory}' makes it."
