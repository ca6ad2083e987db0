"""On a cluster of Dask everything is what it is without one, to the last bit, whoever computes it and whoever dies."""

import os
import subprocess
import sys
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import featgeo as fg
from featgeo.reading import cluster as room
from featgeo.reading import source
from featgeo.reading.source import open_source


@pytest.fixture(autouse=True)
def _every_file_is_a_part(monkeypatch):
    monkeypatch.setattr(source, "PART_BYTES", 1)


def in_process(n_workers, threads=1):
    return LocalCluster(n_workers=n_workers, threads_per_worker=threads, processes=False, dashboard_address=":0")


@pytest.fixture(scope="module")
def client():
    with in_process(2) as cluster, Client(cluster) as client:
        yield client


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n)
    table = pd.DataFrame({
        "a": a,
        "b": a**2 + rng.standard_normal(n),
        "label": rng.choice(list("uvwxyz"), n),
        "few": rng.integers(0, 9, n),
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s"),
    })  # fmt: skip
    table.loc[rng.random(n) < 0.1, ["b", "label"]] = None
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("table")
    table = table_of(6_000)
    for i in range(5):
        table.iloc[1_300 * i : 1_300 * (i + 1)].to_parquet(path / f"{i}.parquet")
    return path


def bits_of(explored):
    counts, three_way = explored.counts, explored.three_way
    arrays = [counts.tables, counts.values, counts.centre, counts.scale, counts.new_labels]
    arrays += [three_way.together, three_way.apart, *(column.edges for column in counts.columns)]
    return [array.tobytes() for array in arrays], repr(explored.about), [column.labels for column in counts.columns]


@pytest.fixture(scope="module")
def here(folder):
    """What this process finds by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PART_BYTES", 1)
        return bits_of(fg.explore(folder, target="b", given=["label", "few"]))


@pytest.mark.parametrize(("n_workers", "threads"), [(1, 1), (2, 1), (4, 1), (2, 3)])
def test_a_folder_is_explored_to_the_same_bits_by_any_number_of_workers(folder, here, n_workers, threads):
    with in_process(n_workers, threads) as cluster, Client(cluster) as client:
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == n_workers
        assert not open_source(folder).is_read_here
        assert bits_of(fg.explore(folder, target="b", given=["label", "few"])) == here


def test_a_dask_frame_is_explored_to_the_same_bits_with_and_without_a_client(folder, here, client):
    frame = dd.read_parquet(folder)
    assert bits_of(fg.explore(frame, target="b", given=["label", "few"])) == here
    with client.as_current(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "client", lambda: None)
        assert bits_of(fg.explore(frame, target="b", given=["label", "few"])) == here


def test_options_in_force_are_those_of_the_workers(folder, client):
    with fg.options(folds=3):
        assert fg.explore(folder).counts.folds == 3


def test_explorations_like_an_earlier_one_are_the_same_by_workers(folder, client):
    first = fg.explore(table_of(2_000, seed=1), target="b")
    by_workers = bits_of(fg.explore(folder, like=first))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "client", lambda: None)
        assert bits_of(fg.explore(folder, like=first)) == by_workers


def mortal(i, marker, table):
    """A partition; the worker that reads the fourth for the first time dies over it."""
    if i == 3 and marker is not None and not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    return table.iloc[1_500 * i : 1_500 * (i + 1)]


def test_a_worker_that_dies_in_the_middle_changes_no_bit(tmp_path):
    table = table_of(9_000, seed=2)
    frame = dd.from_map(mortal, range(6), marker=None, table=table, meta=table.iloc[:0])
    deadly = dd.from_map(mortal, range(6), marker=str(tmp_path / "dead"), table=table, meta=table.iloc[:0])
    expected = bits_of(fg.explore(frame, target="b"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        cluster.scheduler.allowed_failures = 0  # one death would be the end
        assert bits_of(fg.explore(deadly, target="b")) == expected
        assert cluster.scheduler.allowed_failures == 0, "what is not ours is as it was"
    assert (tmp_path / "dead").exists()


def test_partitions_may_be_empty(client):
    table = table_of(3_000)
    full = dd.from_map(lambda i: table.iloc[1_000 * i : 1_000 * (i + 1)], range(3), meta=table.iloc[:0])
    with_empty = full.map_partitions(lambda part: part.iloc[: 0 if 1_500 in part.index else None])
    found = fg.explore(with_empty, columns=["a", "b", "few"])
    assert found.n_rows == 2_000
    with pytest.raises(ValueError, match="A table needs rows, and partition 0 has 5 columns and none"):
        fg.explore(full[full.few < 0])


def test_what_is_unknown_or_differs_between_partitions_is_said(client, folder):
    table = table_of(100)
    with pytest.raises(ValueError, match=r"must be columns of the Dask frame, and \['nosuch'\] are not"):
        fg.explore(dd.read_parquet(folder), columns=["a", "nosuch"])
    other = dd.from_map(lambda i: table if i == 0 else table.rename(columns={"a": "z"}), range(2), meta=table.iloc[:0])
    with pytest.raises(ValueError, match=r"must have its columns, and partition 1 lacks \['a'\] and adds \['z'\]"):
        fg.explore(other)
    words = dd.from_map(lambda i: table if i == 0 else table.assign(a="word"), range(2), meta=table.iloc[:0])
    with pytest.raises(ValueError, match=r"column 'a' is double, and .*string in partition 1"):
        fg.explore(words)


def test_files_that_workers_do_not_find(tmp_path, client):
    for i in range(2):
        table_of(50).to_parquet(tmp_path / f"{i}.parquet")
    opened = open_source(tmp_path)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="Workers of a cluster must find files under the same path"):
        opened.reduced(lambda part: len(list(part.batches(["a"]))), lambda a, b: a + b)


def test_an_asynchronous_client_is_refused(monkeypatch, folder):
    class Asynchronous:
        asynchronous = True

    monkeypatch.setattr("distributed.default_client", Asynchronous)
    with pytest.raises(ValueError, match="waits for results, and this one is asynchronous"):
        fg.explore(folder)


def test_nothing_of_dask_is_imported_to_read_without_it(folder):
    code = (
        f"import sys; from featgeo.reading.source import open_source; s = open_source({str(folder)!r}); "
        "s.reduced(lambda part: 1, lambda a, b: a + b); print({'dask', 'distributed'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "set()"
