"""Places: a scheme that is not supported is refused, and never becomes a local directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.pipeline.locations import input_places, local_path
from mqis.pipeline.sources.files import paths_in
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from tests.cli.commands import run

REMOTE = ("s3a://bucket/x", "s3://bucket", "hdfs:/x", "abfss://c@a/x", "gs://b", "HTTP://host/x")


@pytest.mark.parametrize("place", REMOTE)
def test_another_scheme_is_refused(place: str) -> None:
    scheme = place.partition(":")[0].lower()
    for given in (place, Path(place)):  # a path has lost a slash
        with pytest.raises(MqisError, match=f"{scheme}: is not supported; give a path"):
            local_path(given)
    with pytest.raises(MqisError, match=f"{scheme}: is not supported"):
        TableDirectory(None, place)  # type: ignore[arg-type]


def test_plain_paths_and_file_uris() -> None:
    assert local_path("demo/tables") == Path("demo/tables")
    assert local_path("file:///srv/a%20b") == Path("/srv/a b")
    assert local_path("file:/srv/a") == local_path("file://localhost/srv/a") == Path("/srv/a")
    assert local_path(local_path("./s3a:/x")) == Path("s3a:/x").absolute()
    assert local_path("a:b") == Path("a:b")
    assert input_places("a, file:///b,,") == [Path("a"), Path("/b")]
    with pytest.raises(MqisError, match="at 'host'"):
        local_path("file://host/x")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("a,http://host/x", "not a supported scheme"),
        ("s3://b/../x", "write s3://BUCKET/PATH"),
        ("s3://b/x?access_key=AKIAKEY&secret_key=hush-hush", "leave the credential out"),
    ],
)
@pytest.mark.req("SEC-13-02")
def test_inputs_that_cannot_be_read_are_refused(given: str, reason: str) -> None:
    """The names of inputs go into tables, so a credential must not be in them."""
    with pytest.raises(MqisError, match=reason) as caught:
        paths_in({"path": given}, "anything", "*")
    assert "hush" not in str(caught.value)


def test_commands_refuse_it_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["run", "--exports", ".", "--tables", "s3a://bucket/tables"],
        ["show", "lag", "--tables", "s3a://bucket/tables"],
        ["report", "s3a://bucket/report.html"],
        ["report", "--pdf", "s3a://bucket/report.pdf"],
        ["rebuild", "s3a://bucket/out.jsonl", "--at", "2024-01-01"],
    ):
        error = run("pipeline", *arguments).exception
        assert isinstance(error, MqisError), arguments
        assert str(error).startswith("s3a://bucket"), error
    assert list(tmp_path.iterdir()) == []
