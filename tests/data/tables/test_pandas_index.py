"""The index that pandas writes into Parquet is no feature, unless it is named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ornstein.data as od
from ornstein.recipe.inputs._series_table import load_sequences
from ornstein.recipe.options import DataOptions, SeriesOptions


@pytest.fixture
def shuffled(tmp_path: Path) -> str:
    """Rows that were sorted by their class, whose index says so."""
    num_rows = 60
    noise = np.random.default_rng(0).normal(size=(num_rows, 2))
    frame = pd.DataFrame(noise, columns=["a", "b"])
    frame["kind"] = np.repeat(["u", "v"], num_rows // 2)
    path = tmp_path / "shuffled.parquet"
    frame.sample(frac=1, random_state=1).to_parquet(path)
    return str(path)


def test_an_index_is_left_out(shuffled: str):
    """Catches that an index tells the classes (seen), in memory as in a stream."""
    data = od.load(shuffled, target="kind")
    assert data.feature_names == ("a", "b")
    assert "'__index_level_0__' is left out: it is the index" in " ".join(data.notes)
    streamed = od.load(shuffled, target="kind", stream=True)
    assert streamed.feature_names == data.feature_names


def test_an_index_is_read_where_it_is_named(shuffled: str):
    data = od.load(shuffled, target="kind", features=["a", "__index_level_0__"])
    assert data.feature_names == ("a", "__index_level_0__")


def test_an_index_is_no_value_of_sequences(tmp_path: Path):
    """Catches a count of rows that is learned as a value (seen)."""
    frame = pd.DataFrame({"t": np.arange(40.0), "v": np.arange(40.0) % 7})
    path = tmp_path / "series.parquet"
    frame.iloc[5:].drop(index=[9]).to_parquet(path)
    assert "__index_level_0__" in od.read_table(path).column_names
    options = DataOptions(data=str(path))
    data = load_sequences(options, SeriesOptions(time="t"), seed=0)
    assert data.feature_names == ("v",)
