"""``mqis check`` and ``mqis routes``, from an export, a store and a server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.lab.generate import Generated, GeneratePlan, generate
from tests.cli.commands import process, run
from tests.cli.running import ALICE, BOB, PASSWORDS, prepare, serving

PLAN = GeneratePlan(sites=3, machines=9, queues=20, changes=10, faults=0, hygiene=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Generated]:
    directory = tmp_path_factory.mktemp("check") / "made"
    result = generate(PLAN, directory)
    return directory / "exports", result


def as_json(*arguments: str | Path, status: int, stdin: bytes | None = None) -> dict[str, Any]:
    done = run(*arguments, "--json", stdin=stdin)
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_server_s_export_shows_the_planted_faults_and_nothing_else(
    made: tuple[Path, Generated],
) -> None:
    exports, result = made
    planted = sorted((fault.check, fault.type, fault.id) for fault in result.hygiene)
    for file in sorted(exports.glob("*.jsonl")):
        found = as_json("check", file, status=1)
        assert sorted((f["check"], f["type"], f["id"]) for f in found["findings"]) == planted
        assert found["clean"] is False
        assert all(f["explanation"] and f["advice"] for f in found["findings"])
        # Only the PEC knows the gates that links name: to all others the site is unknown.
        unknown = [limit["check"] for limit in found["unknown"]]
        assert ("no_gate" in unknown) == (file.stem != result.members[0].name)
        counted = {limit["check"]: limit["left_out"] for limit in found["unknown"]}
        assert counted.pop("no_gate", 1) == 1
        assert set(counted.values()) == {0}


def test_a_sound_store_is_clean(demo_store: Path) -> None:
    done = run("check", demo_store)

    assert done.exit_code == 0, done.output
    assert "no faults found" in done.stdout
    assert as_json("check", "--store", demo_store, status=0)["findings"] == []


def test_findings_in_words(made: tuple[Path, Generated]) -> None:
    done = run("check", made[0] / "s001-psc.jsonl", "--limit", "1")
    text = " ".join(done.stdout.split())

    assert done.exit_code == 1
    assert "orphaned_queue, 2 findings: the queue's machine is not in the directory" in text
    assert "and 1 more: --limit 2" in text
    assert "cannot tell: duplicate_id: one server keeps one object" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1"),
        (b"nonsense\n", "line 1"),
        (
            b'{"format":"mqis-directory","version":1,"enterprise":"M","partitions":[]}\n\xff',
            "UTF-8",
        ),
        (
            b'{"format":"mqis-directory","version":1,"enterprise":"M","partitions":[],"lines":3}\n',
            "announces 3 more lines, but 0 follow",
        ),
        (b"x" * (16 << 20) + b"xx", "a line has at most 16,777,216 bytes"),
    ],
)
def test_a_damaged_export_is_trouble(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    done = run("check", path)

    assert done.exit_code == 2
    assert str(path) in done.output
    assert message in done.output
    assert "Traceback" not in done.output


def test_trouble(tmp_path: Path, demo_store: Path) -> None:
    missing = run("check", tmp_path / "none.jsonl")
    assert (missing.exit_code, "cannot be read" in missing.output) == (2, True)
    assert run("check", tmp_path).exit_code == 2
    both = run("check", demo_store, "--store", demo_store)
    assert (both.exit_code, "exclude each other" in both.output) == (2, True)
    secret = process("check", "postgresql://me:secret@host/db")
    assert secret.returncode == 2
    assert b"a password on the command line" in secret.stderr


@pytest.mark.req("SEC-12-13")
def test_names_cannot_control_the_terminal(made: tuple[Path, Generated], tmp_path: Path) -> None:
    text = (made[0] / "s001-psc.jsonl").read_text("ascii")
    path = tmp_path / "hostile.jsonl"
    path.write_text(text.replace("gateless001", "\\u001b[2J{id}[red]"), "ascii")
    done = run("check", path)

    assert done.exit_code == 1
    assert "\x1b[2J" not in done.stdout
    assert "\\x1b[2J{id}[red]" in done.stdout


@pytest.mark.req("SEC-12-09")
def test_a_server_is_checked_by_what_it_shows(demo_store: Path, tmp_path: Path) -> None:
    """An administrator sees everything; who sees nothing gets no verdict."""
    prepare(tmp_path / "server", demo_store)
    with serving(tmp_path / "server", "--json") as server:
        who = server.through_mapper
        found = as_json("check", *who, "--user", ALICE, status=0, stdin=PASSWORDS[ALICE])
        nobody = run("check", *who)
        bob = run("check", *who, "--user", BOB, "--json", stdin=PASSWORDS[BOB])

    assert found["findings"] == []
    assert found["objects"] == as_json("check", demo_store, status=0)["objects"]
    assert {limit["check"] for limit in found["unknown"]} >= {"duplicate_id", "writable"}
    assert nobody.exit_code == 2
    assert "shows no site to this user" in nobody.output
    if bob.exit_code != 2:  # objects that he may not read are no orphans' missing machines
        assert json.loads(bob.stdout)["findings"] == []


# --- several copies -------------------------------------------------------------------------------


def own_queue(export: Path, owner: str) -> dict[str, Any]:
    """A queue of the partition that this server decides about, as the export has it."""
    header, *entries = map(json.loads, export.read_text("ascii").splitlines())
    own = {p["id"] for p in header["partitions"] if p["owner"] == owner}
    queues = (e for e in entries if e["type"] == "queue" and e["partition"] in own)
    found: dict[str, Any] = next(queues)
    return found


def test_all_authorities_together_show_the_planted_faults_and_nothing_else(
    made: tuple[Path, Generated],
) -> None:
    exports, result = made
    planted = sorted((fault.check, fault.type, fault.id) for fault in result.hygiene)
    found = as_json("check", *sorted(exports.glob("*.jsonl")), status=1)

    assert sorted((f["check"], f["type"], f["id"]) for f in found["findings"]) == planted
    assert found["objects"] == as_json("check", exports / "s001-psc.jsonl", status=1)["objects"]
    assert found["unknown"] == []


def test_only_the_copies_of_both_authorities_show_a_doubled_identifier(
    made: tuple[Path, Generated], tmp_path: Path
) -> None:
    first, second = "s001-psc", "s002-psc"
    taken = own_queue(made[0] / f"{first}.jsonl", first)
    victim = own_queue(made[0] / f"{second}.jsonl", second)
    text = (made[0] / f"{second}.jsonl").read_text("ascii")
    kept = [line for line in text.splitlines(keepends=True) if taken["id"] not in line]
    kept[0] = re.sub('"lines":[0-9]+', f'"lines":{len(kept) - 1}', kept[0])
    doubled_text = "".join(kept).replace(victim["id"], taken["id"])
    (tmp_path / f"{second}.jsonl").write_text(doubled_text, "ascii")
    others = [p for p in sorted(made[0].glob("*-psc.jsonl")) if p.stem != second]
    together = as_json("check", *others, tmp_path / f"{second}.jsonl", status=1)
    doubled = [f for f in together["findings"] if f["check"] == "duplicate_id"]

    assert {f["path"] for f in doubled} == {taken["path"], victim["path"]}
    assert {f["id"] for f in doubled} == {taken["id"]}
    assert taken["id"] in run("check", *others, tmp_path / f"{second}.jsonl").stdout
    for alone in (others[0], tmp_path / f"{second}.jsonl"):
        found = as_json("check", alone, status=1)
        assert "duplicate_id" not in {f["check"] for f in found["findings"]}
        assert "duplicate_id" in {limit["check"] for limit in found["unknown"]}


def test_the_servers_of_a_run_directory_are_checked_together(
    demo_store: Path, tmp_path: Path
) -> None:
    here = NodePlace("ams-dir1", "pec", "Amsterdam", "127.0.0.1", 1, 2, 3, 4, 5, *("",) * 5)
    gone = replace(here, name="ber-dir1", store=str(tmp_path / "gone.db"))
    save_nodes(tmp_path, Nodes("Meridian", (replace(here, store=str(demo_store)), gone)))
    found = as_json("check", "--run", tmp_path, status=0)

    assert found["objects"] == as_json("check", demo_store, status=0)["objects"]
    assert "ber-dir1 has no copy" in found["unknown"][0]["reason"]
    both = run("check", demo_store, "--run", tmp_path)
    assert (both.exit_code, "exclude each other" in both.output) == (2, True)
    assert run("check", "--run", tmp_path / "none").exit_code == 2


# --- routes ---------------------------------------------------------------------------------------


def test_the_routes_of_all_sites(demo_store: Path) -> None:
    done = run("routes", "--store", demo_store, "--json")
    rows = json.loads(done.stdout)

    assert done.exit_code == 0
    for row in rows:
        single = as_json(
            "route", row["source"], row["destination"], "--store", demo_store, status=0
        )
        assert row["cost"] == single["cost"]
    assert len(rows) == 6
    assert "and 4 more: --limit 6" in run("routes", "--store", demo_store, "-n", "2").stdout
    assert run("routes", "--store", demo_store, "--stuck").exit_code == 0


def test_stuck_pairs_and_machines(made: tuple[Path, Generated]) -> None:
    export = made[0] / "s001-psc.jsonl"
    found = as_json("routes", "--stuck", "--directory", export, status=1)

    reasons = {group["reason"].partition(":")[0] for group in found["sites"]}
    assert "site gateless001 has no gate" in reasons
    assert found["pairs"] == sum(len(group["pairs"]) for group in found["sites"])
    assert {"no_hop", "no_site"} == {group["fault"] for group in found["machines"]}
    pair = found["sites"][0]["pairs"][0]
    single = ("route", pair["source"], pair["destination"], "--directory", export)
    assert as_json(*single, status=1)["reachable"] is False
    text = run("routes", "--stuck", "--directory", export).stdout
    assert "pairs of 9 sites without a route" in text
    assert "mqis set site gateless001 gates=MACHINE\n" in text


def test_a_replica_s_copy_does_not_know_all_gates(made: tuple[Path, Generated]) -> None:
    found = as_json("routes", "--stuck", "--directory", made[0] / "s002-psc.jsonl", status=1)
    assert found["unknown"] == ["site003"]


def test_routes_of_nothing(tmp_path: Path) -> None:
    done = run("routes", "--stuck", "--directory", tmp_path / "none.jsonl")
    assert (done.exit_code, "cannot be read" in done.output) == (2, True)
