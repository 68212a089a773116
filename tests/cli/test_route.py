"""``mqis route``, from a store, a server and an export."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import process, run
from tests.cli.running import ALICE, PASSWORDS, prepare, serving
from tests.strategies.routing import named


def as_json(*arguments: str | Path, status: int = 0, stdin: bytes | None = None) -> dict[str, Any]:
    done = run("route", *arguments, "--json", stdin=stdin)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def export(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "directory.jsonl"
    assert run("export", path, "--store", demo_store).exit_code == 0
    return path


def test_one_line_a_hop(demo_store: Path) -> None:
    done = run("route", "ams-desk1", "chi-app1", "--store", demo_store)

    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "ams-desk1 to chi-app1: 4 hops, cost 30",
        "  ams-desk1 -> ams-dir1",
        "  ams-dir1 -> ber-dir1  over Amsterdam - Berlin, leased line, cost 10",
        "  ber-dir1 -> chi-dir1  over Berlin - Chicago, transatlantic fibre, cost 20",
        "  chi-dir1 -> chi-app1",
    ]


def test_explained(demo_store: Path) -> None:
    text = run("route", "AMS-DIR1", "chi-app1", "--store", demo_store, "--explain").stdout

    assert "1. ams-dir1 sends to a gate of the next site on the cheapest path" in text
    assert "   yes is a site gate (3.1.5.8)" in text
    assert "   -> ber-dir1  over Amsterdam - Berlin, leased line, cost 10" in text
    assert "      30 to Chicago by way of Berlin" in text
    assert "      not by way of Amsterdam - Chicago: cost 50, 20 more" in text
    assert text.splitlines()[-1] == "   yes is the destination itself"


def test_json(demo_store: Path) -> None:
    found = as_json("ams-desk1", "chi-app1", "--store", demo_store)

    assert (found["reachable"], found["cost"], found["hops"]) == (True, 30, 4)
    names = [step["machine"]["name"] for step in found["steps"]]
    assert names == ["ams-desk1", "ams-dir1", "ber-dir1", "chi-dir1", "chi-app1"]
    first, second, *_ = found["steps"]
    assert first["rule"] == "routing_server"
    assert [c["name"] for c in first["candidates"]] == ["ams-dir1", "ams-route1"]
    assert first["alternatives"][0]["contest"] == "machine"
    assert second["answers"]["site_gate"] is True
    assert second["crossing"]["to"]["name"] == "Berlin"
    assert second["crossing"]["link"]["name"] == "Amsterdam - Berlin (leased line)"
    assert (second["distance"], second["crossing"]["cost"]) == (30, 10)
    (other,) = second["alternatives"]
    assert (other["lost_by"], other["tied"]) == (20, False)
    assert [site["name"] for site in other["path"]] == ["Amsterdam", "Chicago"]
    assert found["before"] is None


@pytest.mark.parametrize(
    "link",
    [
        *("berlin:chicago", "Chicago:Berlin", "Transatlantic fibre"),
        *("Berlin - Chicago", "chicago - berlin", "Berlin - Chicago (transatlantic fibre)"),
    ],
)
def test_without_a_link(demo_store: Path, link: str) -> None:
    done = run("route", "ams-desk1", "chi-app1", "--store", demo_store, "--without", link)

    assert done.exit_code == 0
    assert "over Amsterdam - Chicago, satellite, cost 50" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "without Berlin - Chicago (transatlantic fibre): cost 50 instead of 30 (+20)"
    )


def test_without_a_link_by_identifier(demo_store: Path) -> None:
    link = as_json("ams-dir1", "ber-dir1", "--store", demo_store)["steps"][0]["crossing"]["link"]
    ends = "ams-dir1", "ber-dir1", "--store", demo_store
    found = as_json(*ends, "--without", link["id"])

    assert found["without"] == [link["id"]]
    assert found["cost"] == 70
    assert found["before"]["cost"] == 10
    unused = run("route", *ends, "--without", "satellite").stdout
    assert unused.splitlines()[-1].endswith(": nothing changes")


def test_no_route_names_what_breaks_it(demo_store: Path) -> None:
    cut = "--without", "satellite", "--without", "Berlin:Chicago"
    done = run("route", "ams-desk1", "chi-app1", "--store", demo_store, *cut)

    assert done.exit_code == 1
    assert "ams-desk1 to chi-app1: no route" in done.stdout
    assert "no route any more; it cost 30" in done.stdout
    assert "no further: site Chicago cannot be reached over any link" in done.stdout
    found = as_json("ams-desk1", "chi-app1", "--store", demo_store, *cut, status=1)
    assert found["breakage"]["fault"] == "no_path"
    assert found["breakage"]["kind"] == "site"


def test_a_site_stands_for_its_gate(demo_store: Path) -> None:
    found = as_json("Berlin", "chicago", "--store", demo_store)

    assert found["source"]["name"] == "ber-dir1"
    assert found["destination"]["name"] == "chi-dir1"


@pytest.mark.parametrize("where", ["store", "export"])
def test_a_queue_stands_for_its_machine(demo_store: Path, export: Path, where: str) -> None:
    source = ("--store", demo_store) if where == "store" else ("--directory", export)
    found = as_json("ams-desk1\\private$\\answers", "CHI-APP1\\Orders", *source)

    assert found == as_json("ams-desk1", "chi-app1", *source)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", "chi-app1"), "there is no machine and no site 'nobody'"),
        (("ams-app1", "chi-app1\\no"), "there is no queue 'chi-app1\\\\no' in the directory"),
        (("a\\private$\\x", "chi-app1"), "there is no machine and no site 'a'"),
        (
            ("ams-app1", "chi-app1", "--without", "pigeon"),
            "--without pigeon: there is no such link; none of 3 links is like it: 'mqis lookup",
        ),
        (
            ("ams-app1", "chi-app1", "--without", "Amsterdm - Berlin"),
            "there is no such link; the nearest are Amsterdam - Berlin (leased line)",
        ),
    ],
)
def test_what_is_not_there(demo_store: Path, arguments: tuple[str, ...], message: str) -> None:
    done = process("route", *arguments, "--store", demo_store)

    assert done.returncode == 1
    assert done.stdout == b""
    assert message in done.stderr.decode()


# --- the three sources ----------------------------------------------------------------------------


def test_an_export_gives_what_the_store_gives(demo_store: Path, export: Path) -> None:
    ends = "ams-desk3", "chi-host1"

    assert as_json(*ends, "--directory", export) == as_json(*ends, "--store", demo_store)
    assert as_json(*ends, "--directory", demo_store) == as_json(*ends, "--store", demo_store)


def test_an_export_with_a_link_to_nowhere_and_a_gate_that_does_not_route(
    export: Path, tmp_path: Path
) -> None:
    """The object that breaks a route is named with what is wrong with it."""
    lines = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()]
    (berlin,) = (o for o in lines if o.get("type") == "site" and o["path"] == "Berlin")
    (gate,) = (o for o in lines if o.get("type") == "machine" and o["path"] == "ber-dir1")
    gate["props"]["210"]["value"] = 4
    direct = [o for o in lines if o.get("type") == "link" and berlin["id"] not in json.dumps(o)]
    direct[0]["props"]["801"]["value"] = str(named("nowhere"))
    path = tmp_path / "edited.jsonl"
    path.write_text("".join(f"{json.dumps(o)}\n" for o in lines), encoding="utf-8")

    done = run("route", "ams-dir1", "chi-app1", "--directory", path)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-2:] == [
        "no further: site Berlin has no gate",
        "  machine ber-dir1 is named as a gate but is not a routing server",
    ]
    unlinked = run("route", "ams-dir1", "chi-app1", "--directory", path, "--without", "leased line")
    assert (
        f"link {named('nowhere')} - Chicago (satellite) names a site that is not" in unlinked.stdout
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1"),
        ("nonsense\n", "line 1"),
        ('{"format":"mqis-directory","version":1,"enterprise":"M","partitions":[]}\nx\n', "line 2"),
        (
            '{"format":"mqis-directory","version":1,"enterprise":"M","partitions":[],"lines":3}\n',
            "announces 3 more lines, but 0 follow",
        ),
    ],
)
def test_a_file_that_is_no_export(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content, encoding="utf-8")
    done = process("route", "a", "b", "--directory", path)

    assert done.returncode == 1
    assert str(path) in done.stderr.decode()
    assert message in done.stderr.decode()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    done = process("route", "a", "b", "--directory", tmp_path / "none.jsonl")
    assert done.returncode == 1
    assert b"cannot be read" in done.stderr


def test_one_source_at_a_time(demo_store: Path, export: Path) -> None:
    done = run("route", "a", "b", "--store", demo_store, "--directory", export)
    assert done.exit_code == 2
    assert "exclude each other" in done.output


@pytest.mark.req("MQBR-2.3-01")
def test_a_server_gives_what_the_store_gives(demo_store: Path, tmp_path: Path) -> None:
    """The directory is read through MS-MQDS, as the product notes say of this kind of directory."""
    prepare(tmp_path / "server", demo_store)
    with serving(tmp_path / "server", "--json") as server:
        who = "--user", ALICE
        ends = "ams-desk1", "chi-app1"
        found = as_json(*ends, *server.through_mapper, *who, stdin=PASSWORDS[ALICE])
        nobody = process("route", *ends, *server.through_mapper)
        queue = "ams-desk1", "chi-app1\\orders"
        by_queue = as_json(*queue, *server.through_mapper, *who, stdin=PASSWORDS[ALICE])
        sent = run("send", *queue, *server.through_mapper, *who, stdin=PASSWORDS[ALICE])

    assert by_queue == found
    assert sent.exit_code == 0, sent.output
    assert nobody.returncode == 1
    assert b"shows no site to this user: name one that may read them with --user" in nobody.stderr
    assert found == as_json("ams-desk1", "chi-app1", "--store", demo_store)


def test_a_route_without_a_picture_loads_no_arrays(demo_store: Path) -> None:
    code = (
        "import sys; from mqis.cli.main import app; import mqis.cli.route; "
        "print([m for m in ('numpy', 'scipy', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
