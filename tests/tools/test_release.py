"""The parts of ``make release``, which builds twice and compares: archives, SBOM, README, locks."""

from __future__ import annotations

import os
import re
import tarfile
import tomllib
from pathlib import Path

import pytest

from hatch_build import with_absolute_links
from tests.docs.documents import ROOT
from tools.release.building import SUMS, pack, sums, write_sums
from tools.release.sbom import bill_of_materials, locked

METADATA = """\
Name: mqis
Requires-Dist: rich>=13
Requires-Dist: uvloop>=0.21; sys_platform != 'win32'
Provides-Extra: all
Requires-Dist: scipy>=1.14; extra == 'all'
Provides-Extra: graphs
Requires-Dist: scipy>=1.14; extra == 'graphs'
"""
RUN = """\
hatchling==1.33.0 \\
    --hash=sha256:00
    # via -r run.in
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:01
    # via
    #   mqis (../pyproject.toml)
    #   scipy
numpy==2.5.4 ; python_full_version >= '3.12' \\
    --hash=sha256:02
    # via scipy
pygments==2.21.0 \\
    --hash=sha256:03
    # via rich
rich==15.0.0 \\
    --hash=sha256:04
    # via mqis (../pyproject.toml)
scipy==1.17.1 \\
    --hash=sha256:05
    # via mqis (../pyproject.toml)
uvloop==0.23.0 ; sys_platform != 'win32' \\
    --hash=sha256:06
    # via mqis (../pyproject.toml)
"""


@pytest.fixture
def bill(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "run.lock").write_text(RUN, "utf-8")
    return bill_of_materials("1.0.0", METADATA, locked(tmp_path, ["run"]), 0)


def test_the_bill_has_what_an_installation_takes_and_nothing_else(bill: dict[str, object]) -> None:
    components = bill["components"]
    assert isinstance(components, list)
    assert [(each["purl"], each["scope"]) for each in components] == [
        ("pkg:pypi/numpy@2.4.6", "optional"),
        ("pkg:pypi/numpy@2.5.4", "optional"),
        ("pkg:pypi/pygments@2.21.0", "required"),
        ("pkg:pypi/rich@15.0.0", "required"),
        ("pkg:pypi/scipy@1.17.1", "optional"),
        ("pkg:pypi/uvloop@0.23.0", "required"),
    ]


def test_the_bill_tells_who_needs_whom(bill: dict[str, object]) -> None:
    dependencies = bill["dependencies"]
    assert isinstance(dependencies, list)
    needs = {each["ref"]: each["dependsOn"] for each in dependencies}
    assert needs["pkg:pypi/rich@15.0.0"] == ["pkg:pypi/pygments@2.21.0"]
    assert needs["pkg:pypi/scipy@1.17.1"] == ["pkg:pypi/numpy@2.4.6", "pkg:pypi/numpy@2.5.4"]
    direct = ["rich@15.0.0", "scipy@1.17.1", "uvloop@0.23.0"]
    assert needs["pkg:pypi/mqis@1.0.0"] == [f"pkg:pypi/{name}" for name in direct]


def test_a_requirement_without_a_lock_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text(RUN, "utf-8")
    with pytest.raises(ValueError, match="no lock has gssapi"):
        bill_of_materials(
            "1.0.0", METADATA + "Requires-Dist: gssapi\n", locked(tmp_path, ["run"]), 0
        )


def test_the_locks_have_every_requirement_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    every = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    names = {re.match(r"[\w-]+", line)[0] for line in every} - {"mqis"}  # type: ignore[index]
    assert len(names) > 10
    assert names <= locked(ROOT / "requirements").keys()


def test_the_same_files_give_the_same_archive(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "deep").mkdir(parents=True)
        for name in ("deep/two", "one") if place == "a" else ("one", "deep/two"):
            file = tmp_path / place / name
            file.write_text(name, "utf-8")
            os.utime(file, (len(place + name), 1_000 if place == "a" else 2_000))
            file.chmod(0o600 if place == "a" else 0o755)
        pack(tmp_path / place, tmp_path / f"{place}.tar.gz", "mqis-1/x", 1_700_000_000)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert archive.getnames() == ["mqis-1/x/deep/two", "mqis-1/x/one"]


def test_checksums_are_as_sha256sum_reads_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc", "utf-8")
    write_sums(tmp_path)
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tmp_path / SUMS).read_text("utf-8") == f"{digest}  file\n"
    assert sums(tmp_path) == {"file": digest}, "not of the checksums themselves"


def test_links_of_the_readme_lead_somewhere_on_a_package_index() -> None:
    shown = with_absolute_links((ROOT / "README.md").read_text("utf-8"), "https://host/tree/")
    targets = re.findall(r"\]\(([^()\s]+)\)", shown)
    assert len(targets) > 20
    assert all(re.match(r"https://|#", target) for target in targets)
    assert "![" in shown
    assert "https://host/tree/docs/tutorial.md" in targets
    assert with_absolute_links("[a](#b) [c](mailto:d)", "x/") == "[a](#b) [c](mailto:d)"
