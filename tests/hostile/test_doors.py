"""Every door, a hundred hostile cases; thousands in the slow run. See `make fuzz`."""

import subprocess
from pathlib import Path

import hostile_doors
import numpy as np
import pytest
from hostile_all import DOORS, prepare
from hostile_harness import WATCH, canary, run_door
from hostile_mutations import PICKLE

from spacql.errors import InputError


@pytest.fixture(scope="module", autouse=True)
def valid_files() -> None:
    prepare()


@pytest.mark.parametrize("name", DOORS)
def test_no_case_ends_untyped_executes_or_writes_outside(name: str) -> None:
    door, share = DOORS[name]
    tally = run_door(name, door, round(100 * share))
    assert tally.sound, [*tally.untyped, *tally.executed, *tally.outside][:5]
    assert tally.refused > 0 or name == "metrics"  # a fuzzer that spoils nothing shows nothing


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS)
def test_nor_do_thousands(name: str) -> None:
    door, share = DOORS[name]
    tally = run_door(name, door, round(2000 * share), first=100_000)
    assert tally.sound, [*tally.untyped, *tally.executed, *tally.outside][:5]


def test_the_harness_sees_what_it_is_there_to_see() -> None:
    import pickle

    def typed(rng: np.random.Generator, folder: Path) -> None:
        raise InputError("A sentence.")

    def untyped(rng: np.random.Generator, folder: Path) -> None:
        raise KeyError("x")

    def unpickles(rng: np.random.Generator, folder: Path) -> None:
        pickle.loads(PICKLE)

    def runs(rng: np.random.Generator, folder: Path) -> None:
        subprocess.run(["true"], check=True)

    def escapes(rng: np.random.Generator, folder: Path) -> None:
        (folder / "../../escaped").write_text("x")

    def inside(rng: np.random.Generator, folder: Path) -> None:
        (folder / "x").write_text("x")

    def counts(door: hostile_doors.Door) -> tuple[int, ...]:
        tally = run_door("x", door, 3)
        kinds = (tally.untyped, tally.executed, tally.outside)
        return (tally.refused, *(min(1, len(kind)) for kind in kinds))

    assert counts(typed) == (3, 0, 0, 0)
    assert counts(untyped) == (0, 1, 0, 0)
    assert counts(unpickles) == (0, 0, 1, 0)
    assert counts(runs)[2] == 1
    assert counts(escapes) == (0, 0, 0, 1)
    assert counts(inside) == (0, 0, 0, 0)
    assert WATCH.folder is None
    assert callable(canary)


def test_a_vault_with_a_lying_index_is_refused_before_it_is_read(tmp_path: Path) -> None:
    import shutil

    import tensorstore

    from spacql.data.formats.vault import import_vault

    shutil.copytree(hostile_doors.samples() / "toy.vlt", tmp_path / "toy.vlt")
    vault = next((tmp_path / "toy.vlt").rglob("metadata.json")).parent
    base = {"driver": "file", "path": f"{vault}/"}
    index = {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": "vault_index"}}
    tensorstore.open(index, open=True).result()[0] = 2**31 - 1
    with pytest.raises(InputError, match=r"claims 2,147,483,647 steps"):
        import_vault(tmp_path / "toy.vlt")


def test_the_logs_that_are_spoiled_are_read_as_they_are(tmp_path: Path, monkeypatch) -> None:
    import hostile_logs
    import pyarrow.parquet

    from spacql.data.formats import read

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(hostile_logs.samples()))
    assert read("minari", "toy/team-v0").spec.observation_sizes == (3, 2)
    for wide in (True, False):
        columns = hostile_logs.table(np.random.default_rng(0), wide)
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
        lines = [list(columns), *zip(*columns.values(), strict=True)]
        (tmp_path / "x.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
        for kind in ("csv", "parquet"):
            found = read(kind, tmp_path / f"x.{kind}")
            assert (found.spec.agents, found.n_transitions) == (("a", "b"), 6)
