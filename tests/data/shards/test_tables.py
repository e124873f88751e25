"""Parquet shards that stay on disk, against the same rows in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ornstein.data import (
    Data,
    DataError,
    DataNotFoundError,
    Standardisation,
    Streamed,
    TableEncoding,
    load,
)

NUM_ROWS = 900


def frame(num_rows: int = NUM_ROWS) -> pd.DataFrame:
    """Every kind of column: gaps, a large mean, a rare category, an id, no targets."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2021-03-01")
    table = pd.DataFrame(
        {
            "size": rng.normal(1e6, 2.0, num_rows),
            "age": np.where(
                rng.random(num_rows) < 0.1, np.nan, rng.gamma(3, 9, num_rows)
            ),
            "rooms": rng.integers(1, 9, num_rows),
            "new": rng.random(num_rows) < 0.3,
            "sold": start + pd.to_timedelta(rng.integers(0, 900, num_rows), unit="D"),
            "city": pd.Categorical(rng.choice(["Graz", "Wien", " "], num_rows)),
            "street": [f"street {i}" for i in range(num_rows)],
            "kind": np.where(np.arange(num_rows) == 7, "rare", "common"),
            "house id": np.arange(num_rows),
        }
    )
    table["price"] = table["rooms"] * 2.0 + rng.normal(size=num_rows)
    table.loc[[3, num_rows // 2], "price"] = np.nan
    return table


def write(folder: Path, table: pd.DataFrame, parts: int = 3, group: int = 70) -> Path:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
        name = f"part-{number:02d}-of-{parts:02d}.parquet"
        table.iloc[rows].to_parquet(folder / name, row_group_size=group, index=False)
    return folder


def streamed(folder: Path, **options) -> Data:
    data = load(str(folder), **({"target": "price", "stream": True} | options))
    assert isinstance(data.train, Streamed)
    return data


def training_rows(data: Data, table: pd.DataFrame) -> np.ndarray:
    left_out = data.train.shards.left_out
    return np.setdiff1d(np.arange(len(table)), left_out)


def all_rows(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The training rows as they lie on disk."""
    blocks = range(len(data.train.shards.block_rows))
    x, y = zip(*(data.train.shards.read(block) for block in blocks), strict=True)
    return np.concatenate(x), np.concatenate(y)


def test_rows_are_those_of_a_table_in_memory(tmp_path: Path):
    """The pass and the encoding, against those of pandas, of all rows at once.

    Catches a fill, a category or a scale that another row decides, and an order of
    features that is not the encoding's. The median of so few rows is exact.
    """
    table = frame()
    data = streamed(write(tmp_path / "shards", table))
    rows = training_rows(data, table)
    names = [n for n in table.columns if n != "price"]
    encoding, notes = TableEncoding.learned(table, names, rows, "x")
    assert data.encoding.columns == encoding.columns
    assert data.feature_names == encoding.feature_names
    assert [c.is_constant for c in data.encoding.columns] == [
        c.is_constant for c in encoding.columns
    ]
    for said, number in (("is left out", 2), ("is 'common' in all training rows", 1)):
        assert sum(said in note for note in data.notes) == number
        assert sum(said in note for note in notes) == number
    assert len(notes) == 3
    raw, _ = encoding.apply(table.iloc[rows], "x")
    expected = Standardisation.fit(raw)
    np.testing.assert_allclose(data.x_scaling.mean, expected.mean, rtol=1e-13)
    np.testing.assert_allclose(data.x_scaling.scale, expected.scale, rtol=1e-8)
    x, y = all_rows(data)
    np.testing.assert_array_equal(x, data.x_scaling.apply(raw))
    prices = table["price"].to_numpy()[rows]
    np.testing.assert_allclose(data.y_scaling.mean, prices.mean(), rtol=1e-13)
    np.testing.assert_allclose(data.y_scaling.scale, prices.std(), rtol=1e-12)
    np.testing.assert_array_equal(y, data.y_scaling.apply(prices[:, None]))


def test_no_row_is_both_learned_and_tested(tmp_path: Path):
    """Each row is in one part: rooms and price tell them apart."""
    table = frame()
    data = streamed(write(tmp_path / "shards", table), validation_fraction=0.1)
    _, y = all_rows(data)
    parts = [y, data.test.y, data.validation.y]
    assert len(data.test) in range(178, 181)  # of 180 rows drawn, two have no price
    assert len(data.validation) in range(70, 73)
    every = np.concatenate(parts)
    expected = np.sort(table["price"].dropna().to_numpy())
    found = np.sort(data.y_scaling.undo(every[:, 0]))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    sample = data.train.in_memory().y
    assert np.isin(sample, y).all()
    assert len(sample) == len(y)
    assert any("2 rows have no price, and are left out" in note for note in data.notes)


def test_the_sample_is_encoded_as_the_rows_on_disk_are(tmp_path: Path):
    data = streamed(write(tmp_path / "shards", frame()))
    x, y = all_rows(data)
    order, sampled = np.argsort(y[:, 0]), np.argsort(data.train.sample.y[:, 0])
    np.testing.assert_array_equal(x[order], data.train.sample.x[sampled])


def test_medians_are_of_some_values_where_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Catches values that are kept for a median and grow with the rows."""
    monkeypatch.setattr("ornstein.data.shards._load_table.MOST_LOOKED_AT", 100)
    table = frame()
    data = streamed(write(tmp_path / "shards", table))
    age = table["age"].to_numpy()[training_rows(data, table)]
    fill = next(c for c in data.encoding.columns if c.name == "age").fill
    assert fill == np.nanmedian(age[:: -(-NUM_ROWS // 100)])


@pytest.mark.parametrize("kind", ["text", "truth", "whole", "category"])
def test_classes_are_numbered_as_in_memory(tmp_path: Path, kind: str):
    table = frame().drop(columns="price")
    table["price"] = {
        "text": np.where(table["rooms"] > 4, "dear", "cheap"),
        "truth": table["rooms"] > 4,
        "whole": table["rooms"] + 3,
        "category": pd.Categorical(np.where(table["rooms"] > 4, "dear", "cheap")),
    }[kind]
    data = streamed(write(tmp_path / "shards", table))
    table.to_parquet(tmp_path / "one.parquet")
    expected = load(str(tmp_path / "one.parquet"), target="price")
    assert data.class_names == tuple(expected.class_names)
    assert data.encoding.targets == expected.encoding.targets
    _, y = all_rows(data)
    rows = training_rows(data, table)
    there = table["price"].iloc[rows].astype(str).to_numpy()
    assert [data.class_names[i] for i in y] == list(there)
    assert y.dtype == np.int32


def test_several_targets_and_a_test_file(tmp_path: Path):
    table = frame().dropna(subset=["price"])
    table["rent"] = table["price"] / 3 + 1
    folder = write(tmp_path / "shards", table)
    table.head(50).to_parquet(tmp_path / "later.parquet", index=False)
    later = tmp_path / "later.parquet"
    data = streamed(folder, target=["price", "rent"], test=later)
    _, y = all_rows(data)
    assert y.shape == (len(table), 2)
    assert data.train.y.shape == y.shape
    raw = data.y_scaling.undo(data.test.y)
    np.testing.assert_allclose(raw[:, 0], table["price"].head(50), rtol=1e-5)


def test_names_of_rows_are_those_of_the_test(tmp_path: Path):
    table = frame().dropna(subset=["price"])
    table["house id"] = [f"H{i}" for i in range(len(table))]
    data = streamed(write(tmp_path / "shards", table), id_column="house id")
    prices = table.set_index("house id")["price"]
    raw = data.y_scaling.undo(data.test.y)[:, 0]
    np.testing.assert_allclose(prices[list(data.test_names)], raw, rtol=1e-5)


def test_categories_of_each_file_have_their_own_numbers(tmp_path: Path):
    """Catches codes of one file's dictionary that are read by another's."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for name, cities in (("a", ["Wien", "Graz"]), ("b", ["Graz", "Bern", "Wien"])):
        table = pd.DataFrame({"city": cities * 20, "y": np.arange(20.0 * len(cities))})
        table["city"] = table["city"].astype("category")
        table.to_parquet(folder / f"{name}.parquet")
    data = load(str(folder), target="y", stream=True, test_fraction=0.1)
    x, _y = all_rows(data)
    raw = data.x_scaling.undo(x)
    whole = pd.concat(pd.read_parquet(folder / f"{n}.parquet") for n in "ab")
    rows = np.setdiff1d(np.arange(100), data.train.shards.left_out)
    for place, name in enumerate(data.feature_names):
        expected = whole["city"].iloc[rows].astype(str) == name.removeprefix("city = ")
        np.testing.assert_allclose(raw[:, place], expected, atol=1e-6)


def test_a_column_may_be_empty_in_one_file(tmp_path: Path):
    table = frame(300)
    folder = write(tmp_path / "shards", table, parts=1)
    (folder / "part-00-of-01.parquet").rename(folder / "a.parquet")
    table.assign(age=None, city=None).to_parquet(folder / "b.parquet", index=False)
    data = streamed(folder)
    assert {"age is empty", "city = (empty)"} <= set(data.feature_names)


DAY = 24 * 3600 * 10**6  # microseconds


def of_types(folder: Path, first: pa.DataType, second: pa.DataType, size: int) -> Path:
    """Two files, whose column `v` has a type in each."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 90, 200)
    v = pa.array(numbers * size, mask=numbers > 80)
    v = v.cast(pa.timestamp("us")) if size == DAY else v
    v = v.cast(pa.int32()) if size == 1 else v
    for name, dtype, rows in (("a", first, slice(100)), ("b", second, slice(100, 200))):
        cells = v[rows].cast(dtype, safe=False)
        table = pa.table({"v": cells, "y": rng.normal(size=100)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=30)
    return folder


@pytest.mark.parametrize(
    ("first", "second", "size"),
    [
        (pa.date32(), pa.timestamp("ms"), DAY),
        (pa.timestamp("us"), pa.timestamp("ms", "UTC"), DAY),
        (pa.decimal128(38, 20), pa.int64(), 1),
        (pa.int64(), pa.float64(), 2**53 + 1),
        (pa.int64(), pa.uint64(), -1),
    ],
    ids=str,
)
def test_types_of_one_kind_are_read_as_each_is(
    tmp_path: Path, first: pa.DataType, second: pa.DataType, size: int
):
    """Catches rows of two types that cannot be joined after the pass, or change."""
    folder = of_types(tmp_path / "mixed", first, second, size)
    (tmp_path / "alike").mkdir()
    usual = pa.timestamp("us") if size == DAY else pa.float64()
    for file in folder.iterdir():
        table = pq.read_table(file)
        table = table.set_column(0, "v", table.column("v").cast(usual, safe=False))
        pq.write_table(table, tmp_path / "alike" / file.name, row_group_size=30)
    mixed, alike = (
        load(str(tmp_path / n), target="y", stream=True, validation_fraction=0.3)
        for n in ("mixed", "alike")
    )
    assert mixed.encoding.columns == alike.encoding.columns
    for part in ("test", "validation"):
        np.testing.assert_array_equal(getattr(mixed, part).x, getattr(alike, part).x)
    np.testing.assert_array_equal(mixed.train.sample.x, alike.train.sample.x)
    np.testing.assert_array_equal(all_rows(mixed)[0], all_rows(alike)[0])


def test_targets_and_names_may_be_of_two_types(tmp_path: Path):
    """Catches classes or names of one file's type that are lost in another's."""
    table = frame(300).dropna(subset=["price"])
    table["price"] = table["rooms"]
    table["house id"] += 2**53  # of which not each is a double
    whole = write(tmp_path / "whole", table, parts=1)
    folder = write(tmp_path / "shards", table.head(100), parts=1)
    (folder / "part-00-of-01.parquet").rename(folder / "a.parquet")
    rest = table.tail(len(table) - 100).astype({"price": float, "house id": float})
    rest.to_parquet(folder / "b.parquet", index=False)
    how = {"id_column": "house id", "task": "classification"}
    mixed, alike = streamed(folder, **how), streamed(whole, **how)
    assert list(map(float, mixed.test_names)) == list(map(float, alike.test_names))
    np.testing.assert_array_equal(mixed.test.y, alike.test.y)


def test_an_index_without_a_name_is_no_feature(tmp_path: Path):
    """Catches rows' numbers that are learned from, where tables in memory have none."""
    table = frame(300)
    table["Unnamed: 0"] = np.arange(300)
    data = streamed(write(tmp_path / "shards", table))
    assert "Unnamed: 0" not in data.feature_names
    assert any("'Unnamed: 0' is left out: it has no name" in n for n in data.notes)


def test_many_different_targets_are_not_counted(tmp_path: Path):
    """Catches a count that ends early, told as the number of targets."""
    table = frame(1500).drop(columns="price").assign(price=np.arange(1500) % 1200)
    data = streamed(write(tmp_path / "shards", table))
    said = "price has more than 1,000 different whole numbers and was taken for regr"
    assert any(said in note for note in data.notes)


def broken(name: str, tmp_path: Path) -> Path:
    """A folder of shards with one thing wrong."""
    table = frame(200)
    a, b = table.head(100), table.tail(100)
    folder = tmp_path / "shards"
    folder.mkdir()
    if name == "empty":
        return folder
    first, second = folder / "a.parquet", folder / "b.parquet"
    if name == "missing":
        first, second = (folder / f"p-0000{i}-of-00003.parquet" for i in (0, 2))
    if name == "two sets":
        first, second = (folder / f"p-00000-of-0000{i}.parquet" for i in (1, 2))
        table.to_parquet(folder / "p-00001-of-00002.parquet", index=False)
    a.to_parquet(first, index=False)
    changed = {
        "text": b.assign(rooms=b["rooms"].astype(str)),
        "fewer": b.drop(columns="rooms"),
        "more": b.assign(extra=1),
        "infinite": b.assign(age=np.where(b["rooms"].index == 150, np.inf, b["age"])),
        "far": b.assign(age=1e200),
        "list": b.assign(age=[[1]] * 100),
    }
    changed.get(name, b).to_parquet(second, index=False)
    if name == "cut":
        second.write_bytes(second.read_bytes()[:-500])
    if name == "kinds":
        np.savez(folder / "c.npz", x=np.zeros((3, 2)), y=np.zeros(3))
    if name == "no target":
        for file in (first, second):
            pd.read_parquet(file).assign(price=None).to_parquet(file)
    return folder


BROKEN = {
    "empty": (DataError, "has 0 files, none of them rows"),
    "missing": (DataNotFoundError, "p-00001-of-00003.parquet is missing: copy them"),
    "two sets": (DataError, "has two sets of shards, p-…-of-00001 and p-…-of-00002"),
    "text": (DataError, r"b.parquet has column 'rooms' of kind category, and .*number"),
    "fewer": (DataError, "b.parquet has no column 'rooms', which .*a.parquet has: wri"),
    "more": (DataError, "b.parquet has a column 'extra', which .*a.parquet has not"),
    "infinite": (DataError, "'age' has inf in row 50 of row group 0 of .*b.parquet"),
    "far": (DataError, "column age has numbers whose squares are beyond"),
    "list": (DataError, "b.parquet has column 'age' of kind list"),
    "cut": (DataError, "b.parquet cannot be read as Parquet"),
    "kinds": (DataError, r"several kinds \(.npz, .parquet\): leave one kind"),
    "no target": (DataError, "every cell of price is empty: give values"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_shards_are_refused(name: str, tmp_path: Path):
    kind, said = BROKEN[name]
    with pytest.raises(kind, match=said):
        streamed(broken(name, tmp_path))


def change(file: Path, name: str) -> None:
    """What may happen to a shard after the pass."""
    table = pd.read_parquet(file)
    if name == "gone":
        file.unlink()
    elif name == "class":
        table.assign(price="unheard of").to_parquet(file, row_group_size=70)
    elif name == "rows":
        table.head(30).to_parquet(file)
    elif name == "columns":
        table.drop(columns="age").to_parquet(file, row_group_size=70)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone", "is gone, which was there when rows were counted: put it back"),
        ("class", "has 'unheard of', which was not among its classes"),
        ("rows", "is not what it was when rows were counted"),
        ("columns", "is not what it was when rows were counted"),
    ],
)
def test_a_shard_that_changed_after_the_pass_is_refused(
    name: str, said: str, tmp_path: Path
):
    table = frame()
    table["price"] = np.where(table["rooms"] > 4, "dear", "cheap")
    folder = write(tmp_path / "shards", table)
    data = streamed(folder)
    file = sorted(folder.iterdir())[-1]
    change(file, name)
    with pytest.raises(DataError, match=said):
        all_rows(data)


def test_a_row_group_larger_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = write(tmp_path / "shards", frame())
    monkeypatch.setattr("ornstein.data.shards._parquet._MOST_OF_MEMORY", 1e-9)
    with pytest.raises(DataError, match="row_group_size=100_000"):
        streamed(folder)


def test_only_columns_that_are_needed_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Catches blocks that are read whole: most of a wide table may be left out."""
    data = streamed(write(tmp_path / "shards", frame()), features=["rooms"])
    asked = []
    read = pq.ParquetFile.read_row_group

    def watched(self, number, columns=None, **rest):
        asked.extend(columns)
        return read(self, number, columns=columns, **rest)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    data.train.shards.read(0)
    assert asked == ["rooms", "price"]


def test_what_takes_all_rows_says_so(tmp_path: Path):
    data = streamed(write(tmp_path / "shards", frame()))
    with pytest.raises(DataError, match="takes all rows at once"):
        data.with_validation()
