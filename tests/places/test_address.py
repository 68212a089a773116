"""Addresses of places: what users write, and that a credential is never printed."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mqis.places import PlaceError, RemoteAddress, is_remote, parse_place


def remote(text: str) -> RemoteAddress:
    place = parse_place(text)
    assert isinstance(place, RemoteAddress)
    return place


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("run/journal", "run/journal"),
        ("/srv/journal", "/srv/journal"),
        ("file:/srv/a%20b", "/srv/a b"),
        ("file:///srv/x", "/srv/x"),
        ("file://localhost/srv/x", "/srv/x"),
        ("file:run", "run"),
    ],
)
def test_paths_stay_paths(text: str, path: str) -> None:
    assert parse_place(text) == Path(path)
    assert not is_remote(text)


def test_a_local_directory_may_be_named_like_a_scheme() -> None:
    assert parse_place("./s3:/x") == Path("s3:/x").absolute()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("s3://bucket", "s3://bucket/"),
        ("s3a://bucket/a//b/", "s3://bucket/a/b"),
        ("s3:/bucket/a", "s3://bucket/a"),
        ("gs://bucket/a%20b", "gs://bucket/a%20b"),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net/a",
        ),
        ("hdfs://name:8020/a?user=me", "hdfs://name:8020/a?user=me"),
        (
            "s3://b/a?scheme=http&endpoint_override=127.0.0.1:9",
            "s3://b/a?endpoint_override=127.0.0.1:9&scheme=http",
        ),
    ],
)
def test_uris(text: str, printed: str) -> None:
    place = remote(text)
    assert str(place) == printed
    assert remote(printed) == place
    assert is_remote(text)


@pytest.mark.req("SEC-13-02")
@pytest.mark.parametrize(
    "text",
    ["s3://b/p?access_key=AKIAKEY&secret_key=hush-hush", "s3://AKIAKEY:hush-hush@b/p"],
)
def test_a_credential_is_kept_but_never_printed(text: str) -> None:
    place = remote(text)
    assert dict(place.secrets) == {"access_key": "AKIAKEY", "secret_key": "hush-hush"}
    child = pickle.loads(pickle.dumps(place / "x"))
    assert dict(child.secrets)["secret_key"] == "hush-hush"
    for shown in (str(place), repr(place), str(child), repr(place.parent)):
        assert "hush" not in shown
        assert "AKIAKEY" not in shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ftp://host/x", "not a supported scheme"),
        ("s3://", "write s3://BUCKET/PATH"),
        ("s3://b/a/../../c", "write s3://BUCKET/PATH"),
        ("s3://b/a%2f..%2fc", "write s3://BUCKET/PATH"),
        ("s3://b/a%0ab", "cannot be printed"),
        ("s3://b/a?colour=red", "unknown setting 'colour'"),
        ("s3://b/a?secret_key=hush-hush", "belong together"),
        ("gs://name:hush-hush@b/a", "not supported"),
        ("file://far/x", "the file is at 'far'"),
    ],
)
def test_wrong_addresses_are_refused_without_their_credential(text: str, reason: str) -> None:
    with pytest.raises(PlaceError, match=reason) as caught:
        parse_place(text)
    assert "hush" not in str(caught.value)


def test_parts_of_an_address() -> None:
    place = remote("s3://b/a?region=x") / "segment.mqj"
    assert place.name == "segment.mqj"
    assert str(place.parent) == "s3://b/a?region=x"
    assert str(remote("s3://b") / "x") == "s3://b/x"
