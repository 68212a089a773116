"""Plans of tables that are made file by file: every row is there once, and few are moved."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mqis.pipeline.layers import InputFile, InputFiles, LayerPlan, MadeOf, merging

NAMES = [f"segment-{number}" for number in range(6)]
#: What a directory has at a run: the files, each with its stamp and whether more is added to it.
RUNS = st.lists(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.builds(InputFile, st.sampled_from("abc"), st.booleans()),
    ),
    min_size=1,
    max_size=8,
)


@given(RUNS)
def test_each_file_is_in_one_layer_as_it_is(runs: list[dict[str, InputFile]]) -> None:
    """A model: the rows of a layer are (file, stamp) pairs, and a row is a byte."""
    rows: dict[str, InputFiles] = {}
    before: dict[str, InputFile] = {}
    for present in runs:
        sizes = {layer: len(files) for layer, files in rows.items()}
        plan = LayerPlan.of(rows, present, sizes)
        same = {n for n in present if n in before and before[n].stamp == present[n].stamp}
        assert plan.read == present.keys() - same
        made = {layer: dict(rows[layer]) for layer in plan.kept}
        copied = {n: s for layer in plan.copied for n, s in rows[layer].items()}
        moved = {n: s for n, s in copied.items() if n not in plan.gone}
        assert plan.read.isdisjoint(moved)
        for name, stamp in (moved | {n: present[n].stamp for n in plan.read}).items():
            layer = plan.open_layer if name in plan.open else plan.closed_layer
            made.setdefault(layer, {})[name] = stamp
        assert made == {layer: files for layer, files in plan.layers.items() if files}
        rows, before = made, present
        held = sorted((n, s) for files in rows.values() for n, s in files.items())
        assert held == sorted((name, file.stamp) for name, file in present.items())


def test_closed_files_stay_where_they_are_while_open_ones_grow() -> None:
    first = {"1": InputFile("a"), "2": InputFile("a", open=True)}
    plan = LayerPlan.of({}, first, {})
    assert plan.layers == {"000001": {"1": "a"}, "000002": {"2": "a"}}
    grown = {"1": InputFile("a"), "2": InputFile("b"), "3": InputFile("a", open=True)}
    again = LayerPlan.of(plan.layers, grown, {"000001": 100, "000002": 1})
    assert again.read == {"2", "3"}
    assert again.copied == {}
    assert again.layers == {"000001": {"1": "a"}, "000003": {"2": "b"}, "000004": {"3": "a"}}


def test_small_layers_become_one() -> None:
    assert merging({}) == frozenset()
    assert merging({"1": 5}) == frozenset()
    assert merging({"1": 5, "2": 3}) == frozenset()
    assert merging({"1": 5, "2": 3, "3": 3}) == {"1", "2", "3"}
    assert merging({"1": 100, "2": 3, "3": 3}) == {"2", "3"}


@given(st.lists(st.integers(1, 50), min_size=1, max_size=100))
def test_there_are_few_layers_and_rows_are_seldom_copied(added: list[int]) -> None:
    sizes: dict[str, int] = {}
    copied = 0
    for run, size in enumerate(added):
        merged = merging(sizes)
        moved = sum(sizes.pop(layer) for layer in merged)
        copied += moved
        sizes[str(run)] = size + moved
    total = sum(added)
    doublings = (total // min(added)).bit_length() + 1
    assert len(sizes) <= doublings + 1
    assert copied <= total * doublings


def test_what_a_version_was_made_of(tmp_path: Path) -> None:
    made = MadeOf("d", "c", {"000001": {"a\udc80": "s"}})
    made.write(tmp_path)
    assert MadeOf.read(tmp_path) == made
    wrong = ('{"1": 2}', '{"a": {}}', '{"*": {}}', "[]", "1")
    layers = (f'{{"digest": "d", "code": "c", "layers": {each}}}' for each in wrong)
    for text in ("", "[]", "{}", "\xff", *layers):
        (tmp_path / "_made.json").write_text(text, "latin-1")
        assert MadeOf.read(tmp_path) == MadeOf()
