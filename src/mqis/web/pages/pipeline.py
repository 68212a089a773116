"""The pipeline's tables and report."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from starlette.responses import FileResponse, Response

from mqis.views.console.pipeline import pipeline_page, report_file, table_rows
from mqis.views.console.server_places import NotShownError
from mqis.web.page_requests import PageRequest
from mqis.web.request_guard import REPORT_POLICY


def show(request: PageRequest) -> Response:
    directory = request.console.settings.tables
    if directory is None or not directory.is_dir():
        return request.page("nothing.html", title="Pipeline", text=_missing_tables(request))
    found = pipeline_page(directory)
    return request.page("pipeline.html", found=found, administrator=request.sees_everything())


def table(request: PageRequest) -> Response:
    name = request.path("name")
    if not request.sees_everything():
        return _refuse_rows(request)
    directory = _directory(request)
    rows = table_rows(directory, name)
    if rows is None:
        raise NotShownError(f"table {name!r} does not exist or cannot be read")
    return request.page("table.html", name=name, found=rows)


def report(request: PageRequest) -> Response:
    if not request.sees_everything():
        return _refuse_rows(request)
    path = report_file(_directory(request))
    if path is None:
        raise NotShownError("there is no report yet: 'mqis pipeline report' writes it")
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return FileResponse(path, headers=headers, media_type="text/html; charset=utf-8")


def _refuse_rows(request: PageRequest) -> Response:
    """Refuses the page: tables and report have objects of all owners, without access checks."""
    text = "Only administrators may see the rows of tables and the report: log in as one, or start "
    text += "the console with --as administrator."
    return request.error(403, "For administrators", text)


def _directory(request: PageRequest) -> Path:
    directory = request.console.settings.tables
    if directory is None or not directory.is_dir():
        raise NotShownError(_missing_tables(request))
    return directory


def _missing_tables(request: PageRequest) -> str:
    directory, run = request.console.settings.tables, request.console.settings.places.run
    if directory is None:
        return "No tables were named: give the directory of 'mqis pipeline' with --tables."
    source = "--exports DIRECTORY" if run is None else f"--run {quote(str(run))}"
    command = f"mqis pipeline run {source} --tables {quote(str(directory))}"
    return f"{directory} does not exist: '{command}' makes it."
