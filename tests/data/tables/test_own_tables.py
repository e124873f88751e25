"""Tables as people have them: text, dates, gaps, ids, semicolons."""

import dataclasses
import json
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ornstein.data as od

N = 60
HEADER = "id;Living area;city;garage;sold on;new;price"
CITIES = ["Wien", "Graz", "Steyr"]


def row(i: int) -> str:
    area = "" if i % 20 == 3 else f"{80 + i},5"
    city = "" if i % 15 == 4 else CITIES[i % 3]
    truth = "true" if i % 4 else "false"
    garage = "ja" if i % 2 else "nein"
    date = f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021"
    return f"H{i};{area};{city};{garage};{date};{truth};{1000 + 10 * i},25"


def write(folder, rows, header=HEADER, name="houses.csv", encoding="utf-8-sig"):
    path = folder / name
    path.write_text("\n".join([header, *rows, ""]), encoding=encoding)
    return path


@pytest.fixture
def houses(tmp_path):
    return write(tmp_path, [row(i) for i in range(N)])


def load(path, **options):
    return od.load(str(path), **{"target": "price", **options})


def test_columns_are_read_as_what_they_are(houses):
    """Catches a decimal comma, a date, a truth or a BOM that is taken for text."""
    data = load(houses)
    assert data.encoding is not None
    kinds = {column.name: column.kind for column in data.encoding.columns}
    assert kinds == {
        "Living area": "number",
        "city": "category",
        "garage": "category",
        "sold on": "date",
        "new": "boolean",
    }
    assert data.feature_names[:4] == (
        "Living area",
        "sold on",
        "new",
        "Living area is empty",
    )
    assert "city = Wien" in data.feature_names
    assert any("'id' is left out" in note for note in data.notes)
    y = np.concatenate([data.train.y, data.test.y])[:, 0]
    raw = y * data.y_scaling.scale + data.y_scaling.mean
    np.testing.assert_allclose(np.sort(raw), 1000.25 + 10 * np.arange(N), rtol=1e-5)


def test_features_are_those_of_pandas_and_scikit_learn(houses, tmp_path):
    """Against pandas' own reading and arithmetic on the raw cells."""
    data = load(houses)
    frame = pd.read_csv(houses, sep=";", decimal=",", encoding="utf-8-sig")
    found = od.read_inputs(houses, data)
    raw = data.x_scaling.undo(found.x.astype(float))
    column = lambda name: raw[:, data.feature_names.index(name)]
    area = frame["Living area"]
    fill = {c.name: c.fill for c in data.encoding.columns}["Living area"]
    np.testing.assert_allclose(column("Living area"), area.fillna(fill), rtol=1e-4)
    np.testing.assert_allclose(column("Living area is empty"), area.isna(), atol=1e-5)
    np.testing.assert_allclose(column("city = Graz"), frame.city == "Graz", atol=1e-5)
    days = pd.to_datetime(frame["sold on"], format="%d.%m.%Y") - pd.Timestamp(0)
    np.testing.assert_allclose(column("sold on"), days / pd.Timedelta("1D"), rtol=1e-4)
    np.testing.assert_allclose(column("new"), frame["new"], atol=1e-5)
    assert found.columns["garage"] == frame.garage.tolist()


def test_what_fills_a_gap_is_of_training_rows(tmp_path):
    """Catches a median, or categories, of all rows (seen on a plant)."""
    rows = [f"{i if i % 9 else ''},{i % 2}.5" for i in range(40)]
    data = load(write(tmp_path, rows, "a,y"), target="y", seed=1)
    raw = data.x_scaling.undo(data.train.x.astype(float))
    own = raw[raw[:, 1] < 0.5, 0]
    fill = data.encoding.columns[0].fill
    assert fill == pytest.approx(np.median(np.round(own)))
    everything = np.median([i for i in range(40) if i % 9])
    assert fill != everything


def test_a_table_of_numbers_is_as_it_was(tmp_path):
    rows = [f"{i},{i % 3},{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, "a,b,y"), target="y")
    assert data.feature_names == ("a", "b")
    raw = data.x_scaling.undo(np.concatenate([data.train.x, data.test.x]))
    assert sorted(np.round(raw[:, 0])) == list(range(30))


def test_schema_is_all_that_inputs_need(houses, tmp_path):
    """Bit for bit, after a way through JSON. Catches rounded scalings."""
    data = load(houses, id_column="id")
    od.save_schema(tmp_path / "data.json", data)
    known = od.load_schema(tmp_path / "data.json")
    assert known.encoding == data.encoding
    assert known.source == data.source
    assert known.notes == data.notes
    assert known.train.x.shape == data.train.x.shape
    assert np.isnan(known.train.x).all()
    ours, theirs = (od.read_inputs(houses, d) for d in (data, known))
    assert np.array_equal(ours.x, theirs.x)
    assert theirs.labels == {"id": [f"H{i}" for i in range(N)]}
    known.check_same(data)
    with pytest.raises(od.DataError, match="its class_names differs"):
        known.check_same(dataclasses.replace(data, class_names=("a", "b")))
    text = json.loads((tmp_path / "data.json").read_text())
    for damaged in (text | {"encoding": 3}, text | {"x_shape": None}, {}, []):
        (tmp_path / "data.json").write_text(json.dumps(damaged))
        with pytest.raises(od.DataError, match="is damaged"):
            od.load_schema(tmp_path / "data.json")
    (tmp_path / "data.json").write_text(json.dumps(text | {"version": 99}))
    with pytest.raises(od.DataError, match="of version 99"):
        od.load_schema(tmp_path / "data.json")


def test_notes_keep_both_spellings(houses, tmp_path):
    data = load(houses)
    od.save_schema(tmp_path / "data.json", data)
    note = od.load_schema(tmp_path / "data.json").notes[0]
    assert "`features` names" in note
    assert "--features names" in note.spelt("--{}".format)


def test_what_training_had_not_is_said(houses, tmp_path):
    data = load(houses)
    cells = row(5).split(";")[:-1]
    strange = [[*cells[:2], "Rom", *cells[3:]], [*cells[:3], "", *cells[4:]]]
    strange.append([cells[0], "90000,5", *cells[2:]])
    header = HEADER.rpartition(";")[0]
    path = write(tmp_path, map(";".join, strange), header, "new.csv")
    found = od.read_inputs(path, data)
    text = " ".join(found.notes)
    assert "'city' has 'Rom' in 1 row," in text
    assert "'garage' has '(empty)'" in text
    assert "'Living area' has 90000.5, " in text
    assert "is it in their unit?" in text


def test_what_an_empty_cell_counts_as_is_said_as_it_is_written(tmp_path):
    """Catches (seen) days since 1970 for a date, and 0 for false."""
    days = pd.date_range("2021-12-01", periods=40)
    rows = [f"{day:%d.%m.%Y},{i % 3 == 0},{i},{i}.5" for i, day in enumerate(days)]
    header = "sold on,new,area,price"
    data = load(write(tmp_path, rows, header), test_fraction=0.5, seed=0)
    fills = {column.name: column.fill for column in data.encoding.columns}
    median = pd.Timestamp(0) + pd.Timedelta(fills["sold on"], "D")
    path = write(tmp_path, [",,,1", f"{rows[0]}"], header, "new.csv")
    text = " ".join(od.read_inputs(path, data).notes)
    written = f"{median:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
    assert f"they count as their median, {written}." in text
    assert "they count as their median, false." in text
    assert f"they count as their median, {fills['area']:g}." in text
    path = write(tmp_path, ["01.12.1921,True,1,1"], header, "far.csv")
    assert "'sold on' has 1921-12-01, " in " ".join(od.read_inputs(path, data).notes)


def test_test_file(houses, tmp_path):
    """Its rows are the test, in the training file's units; all others train."""
    other = write(tmp_path, [row(i) for i in range(N, N + 9)], name="later.csv")
    data = load(houses, test=other)
    assert (len(data.train), len(data.test)) == (N, 9)
    raw = data.test.y[:, 0] * data.y_scaling.scale + data.y_scaling.mean
    np.testing.assert_allclose(raw, 1000.25 + 10 * np.arange(N, N + 9), rtol=1e-5)
    assert data.source.num_rows == N + 9
    data.source.check_unchanged()
    write(tmp_path, [row(i) for i in range(N, N + 8)], name="later.csv")
    with pytest.raises(od.DataError, match="has changed since"):
        data.source.check_unchanged()
    other.unlink()
    with pytest.raises(od.DataNotFoundError, match=r"later.csv, from which .* not the"):
        data.source.check_unchanged()


def test_labelled_rows_have_known_classes(tmp_path):
    rows = [f"{i},{'abc'[i % 3]}" for i in range(30)]
    data = load(write(tmp_path, rows, "x,y"), target="y")
    found = od.labelled_rows(write(tmp_path, ["1,c", "2,a"], "x,y", "n.csv"), data)
    assert found.y.tolist() == [2, 0]
    with pytest.raises(od.DataError, match=r"'d' in row 1.* training had not"):
        od.labelled_rows(write(tmp_path, ["1,c", "2,d"], "x,y", "n.csv"), data)


def test_rows_without_a_target_are_left_out(tmp_path):
    rows = [f"{i},{'' if i == 7 else i % 2}" for i in range(30)]
    data = load(write(tmp_path, rows, "x,y"), target="y")
    assert (data.num_classes, data.class_names) == (2, ("0", "1"))
    assert len(data.train) + len(data.test) == 29
    assert any("1 row has no y, and is left out" in note for note in data.notes)


def test_columns_by_name(houses):
    data = load(houses, features=("city", "new"))
    assert {c.name for c in data.encoding.columns} == {"city", "new"}
    data = load(houses, drop=("city", "id"), id_column="garage")
    assert {c.name for c in data.encoding.columns} == {"Living area", "sold on", "new"}


BAD_CELLS = {
    "all at once": (
        {4: "H4;many;Wien;ja;1.1.2021;true;1,5", 6: "H6;1;Wien;ja;soon;true;1,5"},
        r"'Living area' has 'many' in row 4, .*no number; .*'sold on' has 'soon' in "
        r"row 6.*correct the cells.*`drop` 'Living area' 'sold on'",
    ),
}


@pytest.mark.parametrize("name", BAD_CELLS)
def test_bad_cells_are_said_together(name, tmp_path):
    changes, sentence = BAD_CELLS[name]
    rows = [changes.get(i, row(i)) for i in range(N)]
    with pytest.raises(od.DataError, match=sentence):
        load(write(tmp_path, rows))


REFUSED = {
    "target": (dict(target="prize"), r"no column 'prize' \(did you mean 'price'"),
    "drop": (dict(drop=("cty",)), r"no column 'cty' \(did.*'city'\?\), which `drop` "),
    "id": (dict(id_column="x"), "no column 'x', which `id_column` names"),
    "both": (dict(drop=("city",), features=("city",)), "`features` names 'city', whi"),
    "target twice": (dict(drop=("price",)), "'price' is the column to predict"),
    "separator": (dict(separator=";;"), "`separator` must be one character"),
    "wrong separator": (dict(separator=","), "by `separator`"),
    "test": (dict(test="no.csv"), "There is no file no.csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_cannot_be(name, houses):
    options, sentence = REFUSED[name]
    with pytest.raises(od.DataError, match=sentence):
        load(houses, **options)


def test_options_of_tables_alone(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((9, 1)), y=np.arange(9.0))
    with pytest.raises(od.DataError, match="`drop` is for a .csv or .parquet file"):
        od.load(str(tmp_path / "a.npz"), drop=("x",))


def test_files_in_other_encodings(houses, tmp_path):
    wide = write(tmp_path, [row(i) for i in range(9)], name="w.csv", encoding="utf-16")
    with pytest.raises(od.DataError, match="UTF-16 in its first line"):
        load(wide)
    (tmp_path / "nul.csv").write_bytes(b"a\x00b,y\n1,2\n")
    with pytest.raises(od.DataError, match="NUL bytes in its first line"):
        load(tmp_path / "nul.csv")


def test_days_before_months(tmp_path):
    """Catches a guess where both orders can be read."""
    rows = [f"{1 + i % 12:02d}/{1 + i % 12:02d}/2021,{i}.5" for i in range(30)]
    with pytest.raises(od.DataError, match="day and month cannot be told apart"):
        load(write(tmp_path, rows, "d,y"), target="y")
    rows = [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2021,{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, "d,y"), target="y")
    assert data.encoding.columns[0].date_format == "%m/%d/%Y"


def test_ids_and_names_are_left_out_unless_named(tmp_path):
    rows = [f"{100 + i},name {i},{i % 5},{i}.5" for i in range(40)]
    path = write(tmp_path, rows, "house_id,owner,x,y")
    data = load(path, target="y")
    assert data.feature_names == ("x",)
    left_out = [note for note in data.notes if "is left out" in note]
    assert len(left_out) == 2
    rows = [f"{100 + i % 7},{i}.5" for i in range(40)]
    data = load(write(tmp_path, rows, "house_id,y"), target="y")
    assert data.feature_names == ("house_id",)  # not another in each row


def test_text_of_other_encodings_is_refused(tmp_path):
    """Arrow takes it for bytes. Catches names that are no text (seen)."""
    rows = [f"M{'ü' if i % 2 else 'o'}nchen,{i}.5" for i in range(30)]
    path = write(tmp_path, rows, "city,y", encoding="latin-1")
    with pytest.raises(od.DataError, match="cannot be read as CSV .*invalid UTF8 data"):
        load(path, target="y")
    path = write(tmp_path, ["1,2"] * 9, "größe,y", encoding="latin-1")
    with pytest.raises(od.DataError, match=r"cannot be read as CSV .*give UTF-8"):
        load(path, target="y")


def test_lines_between_quotes(tmp_path):
    rows = [f'"a{i % 2}\nb",{i}.5' for i in range(30)]
    data = load(write(tmp_path, rows, "note,y"), target="y")
    assert set(data.feature_names) == {"note = a0\nb", "note = a1\nb"}


def test_a_text_late_in_a_big_file_is_named(tmp_path):
    """Past Arrow's first block. Catches types that are seen from the first rows."""
    rows = [f"{i},{i % 7}.25" for i in range(200_000)]
    rows[150_000] = "many,1.5"
    path = write(tmp_path, rows, "x,y")
    with pytest.raises(od.DataError, match=r"'x' has 'many' in row 150000"):
        load(path, target="y")


def column(data, path, name="a"):
    """A column's raw numbers, as a prediction reads them."""
    found = od.read_inputs(path, data)
    raw = data.x_scaling.undo(found.x.astype(float))
    return raw[:, data.feature_names.index(name)]


def test_a_comma_means_the_same_in_every_file(tmp_path):
    """Whatever else the file has. Catches a guess by the file at hand (seen)."""
    rows = [f"{i},{i:02d};{i}.5" for i in range(40)]
    data = load(write(tmp_path, rows, "a;y"), target="y")
    for cells, expected in (
        (["1,234"], [1.234]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1.234", "2,5"], [1234, 2.5]),
        (["12"], [12]),
    ):
        path = write(tmp_path, [f"{c};1" for c in cells], "a;b", "new.csv")
        np.testing.assert_allclose(column(data, path), expected, rtol=1e-5)
    with pytest.raises(od.DataError, match=r"'a' has '1.5' in row 0"):
        od.read_inputs(write(tmp_path, ["1.5;1"], "a;b", "new.csv"), data)


@pytest.mark.parametrize(
    ("cells", "separator", "expected"),
    [
        (["1,101", "2,202"], ";", [1.101, 2.202]),
        (['"1,101"', '"2,202"'], ",", [1101, 2202]),
        (["1.234,50", "1.234", "950,25"], ";", [1234.5, 1234, 950.25]),
        (["0,143", "1,286"], ";", [0.143, 1.286]),
        (["1 234", "−5", "3e2"], ";", [1234, -5, 300]),
        (["1.5", "-.5", "+2."], ",", [1.5, -0.5, 2]),
    ],
)
def test_numbers_in_text(cells, separator, expected, tmp_path):
    """Features and targets alike."""
    rows = [f"{cells[i % len(cells)]}{separator}{i}" for i in range(30)]
    path = write(tmp_path, rows, f"a{separator}y")
    data = load(path, target="y", task="regression")
    np.testing.assert_allclose(column(data, path)[: len(cells)], expected, rtol=1e-5)
    data = load(path, target="a", task="regression")
    y = np.concatenate([data.train.y, data.test.y])
    raw = data.y_scaling.undo(y.astype(float))[:, 0]
    np.testing.assert_allclose(np.unique(raw.round(5)), sorted(expected), rtol=1e-5)


CODES = ["01", "1.0", "1.50", "1e5", "true", "12:30", "2020-01-01 10:00", 20 * "9"]


@pytest.mark.parametrize("code", CODES)
def test_a_category_is_the_same_alone(code, tmp_path):
    """Catches text that a parser takes for a number where nothing else is (seen)."""
    rows = [f"{(code, 'A')[i % 2]},{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, "a,y"), target="y")
    assert f"a = {code}" in data.feature_names
    for cells in ([code], [code, "A"]):
        path = write(tmp_path, [f"{c},1" for c in cells], "a,b", "new.csv")
        assert column(data, path, f"a = {code}")[0] == pytest.approx(1, abs=1e-4)
        assert not od.read_inputs(path, data).notes


def test_a_category_in_memory(tmp_path):
    rows = [f"{('1', 'A', '')[i % 3]},{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, "a,y"), target="y")
    given = pd.DataFrame({"a": [1.0, "A", None, "NA", float("nan")]})
    found = od.frame_inputs(given, data)
    assert not found.notes
    raw = data.x_scaling.undo(found.x.astype(float))
    names = [n.removeprefix("a = ") for n in data.feature_names]
    assert [names[i] for i in raw.argmax(1)] == ["1", "A", *3 * ["(empty)"]]


def test_targets_that_are_nearly_numbers(tmp_path):
    """Catches classes of prices (seen)."""
    rows = [f"{i},{'  ' if i == 3 else i + 0.5}" for i in range(30)]
    data = load(write(tmp_path, rows, "x,y"), target="y")
    assert (data.task, len(data.train) + len(data.test)) == ("regression", 29)
    rows = [f"{i},{'-' if i == 3 else i + 0.5}" for i in range(30)]
    with pytest.raises(od.DataError, match=r"'y' has '-' in row 3,.*`task` classifica"):
        load(write(tmp_path, rows, "x,y"), target="y")
    rows = [f"{i},{i}%" for i in range(30)]
    with pytest.raises(od.DataError, match="cannot be classes: it has 30 different"):
        load(write(tmp_path, rows, "x,y"), target="y")


def test_classes_of_large_numbers_keep_their_names(tmp_path):
    rows = [f"{i},{1234567 + i % 2}.0" for i in range(30)]
    data = load(write(tmp_path, rows, "x,y"), target="y", task="classification")
    assert data.class_names == ("1234567", "1234568")


def saved(folder, frame, door):
    if door == "csv":
        frame.to_csv(folder / "own.csv", index=False)
        return folder / "own.csv"
    frame.to_parquet(folder / "own.parquet", index=False)
    return folder / "own.parquet"


DOORS = {"csv": False, "parquet": False, "streamed": True}
ZEROS = ["01", "1", "02"]
CLASSES = {
    "zeros": (ZEROS, ("01", "02", "1")),
    "zeros, of pandas' categories": (pd.Categorical(ZEROS), ("01", "02", "1")),
    "numbers of pandas' categories": (pd.Categorical(["7", "8", "9"]), tuple("789")),
    "beyond doubles": ([2**53, 2**53 + 1, 7], ("7", *map(str, (2**53, 2**53 + 1)))),
    "unsigned": (np.array([2**63 + 1, 5, 7], "u8"), ("5", "7", str(2**63 + 1))),
    "beyond 64 bits": ([str(10**20), "5", "7"], ("5", "7", str(10**20))),
    "of both signs": ([str(2**63), "-5", "7"], ("-5", "7", str(2**63))),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_those_of_the_file(name, door, tmp_path):
    """Catches (seen) 01 and 1 that are one class, and a class that no file has."""
    given, expected = CLASSES[name]
    frame = pd.DataFrame({"y": given})
    frame = pd.concat([frame] * 40, ignore_index=True).assign(x=np.arange(120) % 7)
    path = saved(tmp_path, frame, door)
    data = load(path, target="y", stream=DOORS[door], task="classification")
    assert data.class_names == expected
    later = frame.iloc[:3].assign(x=[1, 2, 4])
    labels = od.frame_labelled(later, data).y
    assert [data.class_names[n] for n in labels] == list(map(str, given))


def test_a_target_with_zeros_before_it_can_be_numbers(tmp_path):
    """Catches a regression that a code, or pandas' category, turns into a refusal."""
    frame = pd.DataFrame({"x": np.arange(90) % 7, "y": [f"{i:03d}" for i in range(90)]})
    path = saved(tmp_path, frame, "csv")
    with pytest.raises(od.DataError, match="'000' has a zero .* or regression"):
        load(path, target="y")
    assert load(path, target="y", task="regression").y_scaling.mean == pytest.approx(
        44.5, abs=9
    )
    data = load(saved(tmp_path, frame.assign(y=frame.y.str[:2]), "csv"), target="y")
    assert data.class_names == tuple(f"0{i}" for i in range(9))
    assert any("`task` regression takes it" in str(note) for note in data.notes)
    path = saved(tmp_path, frame.assign(y=pd.Categorical(frame.y.str[2:])), "parquet")
    data = load(path, target="y")
    assert data.class_names == tuple("0123456789")
    assert any("for pandas has categories" in str(note) for note in data.notes)
    data = load(path, target="y", task="regression")
    assert data.class_names == ()
    frame.loc[frame.index % 3 == 0, "y"] = "Ulm"
    data = load(saved(tmp_path, frame.assign(y=frame.y.str[:2]), "csv"), target="y")
    assert "Ul" in data.class_names
    assert not any("taken for" in note for note in data.notes)


COLUMNS = {
    "zeros": (["01", "1", "10"], "category"),
    "zeros and a word": (["01", "1", "10", "x"], "category"),
    "zeros of pandas": (pd.Categorical(["01", "1"]), "category"),
    "numbers of pandas": (pd.Categorical(["1", "2"]), "category"),
    "whole numbers of pandas": (pd.Categorical([1, 2]), "number"),
    "decimals": (["0.5", "0.25", "1"], "number"),
    "decimals of one width": (["00.5", "10.2", "03"], "number"),
    "commas": (["0,5", "00,2", "3"], "number"),
    "nothing": (["0", "1", "-0"], "number"),
    "days": (["2024-01-31", "2023-02-07"], "date"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_code_is_a_category(name, tmp_path):
    """Catches (seen) features 01 and 1 that are one number."""
    cells, kind = COLUMNS[name]
    frame = pd.concat([pd.DataFrame({"a": cells})] * 40, ignore_index=True)
    frame["y"] = np.arange(len(frame)) / 3
    data = load(saved(tmp_path, frame, "parquet"), target="y", task="regression")
    (column,) = data.encoding.columns
    assert column.kind == kind
    if kind == "category":
        assert set(column.categories) == set(cells)
    is_said = any("zero before it" in note for note in data.notes)
    assert is_said == (name in ("zeros", "zeros and a word"))


def test_a_stray_zero_makes_no_code(tmp_path):
    """Catches (seen) a column of numbers that was left out for one cell of 200."""
    numbers = [str(37 * i) for i in range(3, 203)]
    frame = pd.DataFrame({"a": ["007", *numbers[1:]], "y": np.arange(200) / 3})
    (column,) = load(saved(tmp_path, frame, "csv"), target="y").encoding.columns
    assert column.kind == "number"
    frame["a"] = ["1e3", "007"] * 100
    (column,) = load(saved(tmp_path, frame, "csv"), target="y").encoding.columns
    assert column.kind == "number"
    frame["a"] = ["007", "abc", *numbers[2:]]
    path = saved(tmp_path, frame, "csv")
    for target in ("y", "a"):
        with pytest.raises(od.DataError, match="'a' has 'abc' in row 1, counting"):
            load(path, target=target, task="regression")


def test_a_bad_cell_among_codes_is_named(tmp_path):
    """Catches (seen) "is not a number (for instance '001')"."""
    codes = [f"{i:03d}" for i in range(1, 60)]
    frame = pd.DataFrame({"x": np.arange(60.0), "y": [*codes, "abc"]})
    frame.loc[frame.index > 50, "y"] = "abc"
    with pytest.raises(od.DataError, match="has 'abc' in rows? 51"):
        load(saved(tmp_path, frame, "csv"), target="y", task="regression")


def test_training_rows_are_no_test(tmp_path):
    path = write(tmp_path, [f"{i},{i}.5" for i in range(30)], "x,y")
    copy = tmp_path / "copy.csv"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(od.DataError, match="has the same bytes as"):
        load(path, target="y", test=copy)


def test_a_test_among_the_training_files_is_no_test(tmp_path):
    """Of a folder that is streamed. Catches (seen) rows that were learned from."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for part in range(2):
        frame = pd.DataFrame({"x": np.arange(40.0), "y": part + np.arange(40.0) ** 2})
        frame.to_parquet(parts / f"p{part}.parquet")
    (parts / "_SUCCESS").touch()  # as Spark leaves one
    copy = tmp_path / "copy.parquet"
    copy.write_bytes((parts / "p1.parquet").read_bytes())
    for test in (copy, parts / "p1.parquet"):
        with pytest.raises(od.DataError, match="has the same bytes as"):
            load(parts, target="y", test=test, stream=True)
    data = load(parts, target="y", stream=True)
    with pytest.raises(od.DataError, match="is what the run learned from"):
        od.read_labelled(copy, data)


@pytest.mark.parametrize("with_comma", ["g", "y"])
def test_features_and_target_have_one_decimal_mark(tmp_path, with_comma):
    """Of features and target. Catches (seen) a target 1.234 among thousands, and
    features 1.200 beside a target with commas."""
    small, large = ("1,5", "2,5", "0,5", "3,5"), ("950", "1.200", "2.300", "700")
    rows = [";".join(pair) for pair in zip(small, large, strict=True)] * 10
    header = "g;y" if with_comma == "g" else "y;x"
    data = load(write(tmp_path, rows, header), target="y", test_fraction=0.1)
    x = data.x_scaling.undo(data.train.x)
    y = data.y_scaling.undo(data.train.y)
    of_large, of_small = (y, x) if with_comma == "g" else (x, y)
    assert {*np.round(np.ravel(of_large))} == {950, 1200, 2300, 700}
    assert {*np.round(np.ravel(of_small), 2)} == {1.5, 2.5, 0.5, 3.5}


def test_numbers_in_columns_of_objects_are_numbers(tmp_path):
    """Where text has decimal commas. Catches (seen) 1.234 that becomes 1234."""
    rows = [f"{i},5;{i % 7}" for i in range(40)]
    data = load(write(tmp_path, rows, "x;y"), target="y", task="regression")
    cells = [1.234, 2, np.float64(3.125), "4,5", "1.200"]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    found = data.x_scaling.undo(od.frame_inputs(frame, data).x).ravel()
    np.testing.assert_allclose(found, [1.234, 2, 3.125, 4.5, 1200], rtol=1e-5)


@pytest.mark.parametrize("cell", ["2", "0.5", "-1", "maybe"])
def test_what_is_no_truth_is_no_class(tmp_path, cell):
    """Catches (seen) 2, a code for what is missing, that counts as true."""
    rows = [f"{i},{'true' if i % 3 else 'false'}" for i in range(40)]
    data = load(write(tmp_path, rows, "x,y"), target="y")
    others = write(tmp_path, ["1,1", f"2,{cell}", "3,0"], "x,y", name="others.csv")
    with pytest.raises(od.DataError, match=rf"target y has .*{cell}.* in row 1"):
        od.read_labelled(others, data)
    kept = write(tmp_path, ["1,1", "3,0"], "x,y", name="others.csv")
    assert od.read_labelled(kept, data).y.tolist() == [1, 0]


def test_ids_are_as_written(tmp_path):
    """Catches leading zeros, and digits, that a number loses."""
    ids = ["0007", 20 * "3", "12E3", "2020-01-01"]
    rows = [f"{ids[i % 4]},{i},{i}.5" for i in range(30)]
    path = write(tmp_path, rows, "key,x,y")
    data = load(path, target="y", id_column="key")
    assert od.read_inputs(path, data).labels["key"][:4] == ids
    for one in ids:
        new = write(tmp_path, [f"{one},1"], "key,x", "new.csv")
        assert od.read_inputs(new, data).labels["key"] == [one]


def test_columns_that_are_asked_for_stay(tmp_path):
    rows = [f"{i},{i}.5" for i in range(30)]
    path = write(tmp_path, rows, "id,y")
    assert load(path, target="y", features=("id",)).feature_names == ("id",)


def test_separators_at_line_ends(tmp_path):
    rows = [f"{i};{i},5;;" for i in range(30)]
    data = load(write(tmp_path, rows, "x;y;;"), target="y")
    assert data.feature_names == ("x",)


IN_MEMORY = {
    "whole names": (lambda t: t.set_axis([0, 1], axis=1), None),
    "twice": (lambda t: t[["0", "0"]], "two columns of one name, '0'"),
    "twice, unread": (lambda t: pd.concat([t, t[["z"]]], axis=1), None),
    "no rows": (lambda t: t.iloc[:0], "has no rows"),
    "complex": (lambda t: t.astype({"0": complex}), "'0' has"),
    "dates": (lambda t: t.astype({"0": "datetime64[ns]"}), "'0' has"),
    "arrow numbers": (lambda t: t.astype({"0": "int64[pyarrow]"}), None),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_tables_in_memory(name, tmp_path):
    """Catches pandas' and scikit-learn's own tracebacks (each seen)."""
    change, sentence = IN_MEMORY[name]
    data = load(write(tmp_path, [f"{i},{i}.5" for i in range(30)], "0,y"), target="y")
    frame = change(pd.DataFrame({"0": [5, 6], "z": [1, 2]}))
    if sentence is None:
        raw = data.x_scaling.undo(od.frame_inputs(frame, data).x.astype(float))
        np.testing.assert_allclose(raw[:, 0], [5, 6], rtol=1e-5)
        return
    with pytest.raises(od.DataError, match=sentence):
        od.frame_inputs(frame, data)


class OfAnotherLibrary:
    columns = ("0", "y")

    def __init__(self, frame):
        self.frame = frame

    def to_pandas(self):
        return self.frame


@pytest.mark.parametrize("kind", [pa.Table.from_pandas, OfAnotherLibrary])
def test_tables_of_other_libraries(kind, tmp_path):
    """Catches (seen) an AttributeError of Arrow's."""
    data = load(write(tmp_path, [f"{i},{i}.5" for i in range(30)], "0,y"), target="y")
    frame = pd.DataFrame({"0": [5, 6], "y": [1.5, 2.5]})
    found, ours = od.frame_labelled(kind(frame), data), od.frame_labelled(frame, data)
    np.testing.assert_array_equal(found.inputs.x, ours.inputs.x)
    np.testing.assert_array_equal(found.y, ours.y)
    for read in (od.frame_inputs, od.frame_labelled):
        with pytest.raises(od.DataError, match="of type ndarray: give a pandas table"):
            read(frame.to_numpy(), data)


@pytest.mark.parametrize(("learned", "given"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_names_in_another_unicode_form_are_said(learned, given, tmp_path):
    """Catches (seen) "no column 'Größe' (did you mean 'Größe'?)"."""
    names = {form: unicodedata.normalize(form, "Größe") for form in (learned, given)}
    rows = [f"{i},{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, f"{names[learned]},y"), target="y")
    match = rf"in another Unicode form: bring it to {learned}\): its"
    with pytest.raises(od.DataError, match=match):
        od.frame_inputs(pd.DataFrame({names[given]: [1.0]}), data)
    rows = [f"{i},{names[learned] if i % 2 else 'Ulm'}" for i in range(30)]
    data = load(write(tmp_path, rows, "a,y"), target="y")
    new = write(tmp_path, [f"1,{names[given]}"], "a,y", "new.csv")
    with pytest.raises(od.DataError, match=match):  # seen: the form that it has
        od.read_labelled(new, data)


@pytest.mark.usefixtures("unchecked")
def test_a_table_in_memory_is_no_name():
    """Catches (seen) a TypeError of pathlib's."""
    with pytest.raises(od.DataError, match="path, and got DataFrame: write"):
        od.load(pd.DataFrame({"x": [1.0], "y": [2.0]}), target="y")


def test_a_file_may_be_given_as_a_path(tmp_path):
    """Catches (seen) an AttributeError."""
    file = write(tmp_path, [f"{i},{i}.5" for i in range(30)], "a,y")
    by_name, by_path = (od.load(f(file), target="y") for f in (str, Path))
    np.testing.assert_array_equal(by_name.train.x, by_path.train.x)
    assert by_name.name == by_path.name


def test_arrow_dates_are_dates(tmp_path):
    rows = [f"2024-01-{1 + i % 28:02d},{i}.5" for i in range(30)]
    data = load(write(tmp_path, rows, "a,y"), target="y")
    path = write(tmp_path, ["2024-01-05,1"], "a,b", "new.csv")
    dates = pd.Series(["2024-01-05"], dtype="datetime64[ns]")
    for kind in ("date32[pyarrow]", "datetime64[ns]"):
        frame = pd.DataFrame({"a": dates.astype(kind)})
        np.testing.assert_array_equal(
            od.frame_inputs(frame, data).x, od.read_inputs(path, data).x
        )


DATES = {
    "text": [f"2024-01-{day:02d}T06:00:00" for day in range(1, 29)],
    "days": [f"2024-01-{day:02d}" for day in range(1, 29)],
    "zoned text": [f"2024-01-{day:02d} 06:00+01:00" for day in range(1, 29)],
    "pandas": pd.date_range("2024-01-01", periods=28),
    "zoned pandas": pd.date_range("2024-01-01", periods=28, tz="Europe/Vienna"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("learned", DATES)
def test_dates_have_a_time_zone_or_none(learned, door, tmp_path):
    """Catches (seen) hours by which dates are moved where training had no zone."""
    frame = pd.DataFrame({"d": DATES[learned], "y": np.arange(28) / 3})
    if door == "streamed" and "pandas" not in learned:
        frame["d"] = pd.to_datetime(frame["d"])
    data = load(saved(tmp_path, frame, door), target="y", stream=DOORS[door])
    before = dataclasses.replace(data.encoding.columns[0], has_zone=None)
    encoding = od.TableEncoding((before,))
    assert encoding.columns == data.encoding.columns
    for given, dates in DATES.items():
        for number in (3, 84):
            asked = pd.DataFrame({"d": list(dates) * 3})[:number]
            encoding.apply(asked, "t")  # a run of before
            if ("zoned" in given) == ("zoned" in learned):
                data.encoding.apply(asked, "t")
                continue
            with pytest.raises(od.DataError, match=r"row 0.* time zone, where train"):
                data.encoding.apply(asked, "t")


def test_dashes_and_days(tmp_path):
    rows = [f"{1 + i % 12:02d}-{1 + i % 12:02d}-2021,{i}.5" for i in range(30)]
    with pytest.raises(od.DataError, match="day and month cannot be told apart"):
        load(write(tmp_path, rows, "d,y"), target="y")


def test_text_that_never_repeats_is_left_out_though_asked_for(tmp_path):
    """Catches a column of categories that has none."""
    path = write(tmp_path, [f"{i},t{i},,{i}" for i in range(30)], header="x,name,gap,y")
    data = load(path, target="y", features=("x", "name", "gap"))
    assert data.feature_names == ("x",)
    left_out = [note for note in data.notes if "is left out" in note]
    assert len(left_out) == 2


def test_a_weight_of_two_is_two_rows():
    """Catches medians and common categories of rows that count once each."""
    rng = np.random.default_rng(0)
    for num_rows in (2, 7, 40):
        weight = rng.integers(1, 5, num_rows).astype(float)
        frame = pd.DataFrame(
            {
                "size": np.where(
                    rng.random(num_rows) < 0.3, np.nan, rng.random(num_rows)
                ),
                "town": rng.choice(list("abcdefgh"), num_rows),
            }
        )
        frame.loc[0, "size"] = 1.0
        many = frame.loc[frame.index.repeat(weight.astype(int))].reset_index(drop=True)
        learned = lambda frame, **how: od.TableEncoding.learned(
            frame, ["size", "town"], np.arange(len(frame)), "X", is_asked=True, **how
        )
        ours, theirs = learned(frame, weights=weight)[0], learned(many)[0]
        assert ours.columns[0] == theirs.columns[0]
        of = lambda encoding: [set(c.categories) for c in encoding.columns[1:]]
        assert of(ours) == of(theirs)


def test_a_table_has_one_decimal_mark(tmp_path):
    """Catches thousands of a column of whole numbers that are read as decimals."""
    path = tmp_path / "towns.csv"
    lines = [f"{n};{n % 7},5;{n % 5}" for n in range(1_000, 1_040)]
    path.write_text("\n".join(["people;area;y", *lines, ""]))
    data = od.load(str(path), target="y", task="regression")
    new = tmp_path / "new.csv"
    new.write_text("people;area\n2.320;78,1\n1010,0;3\n1010;3\n")
    x = data.x_scaling.undo(od.read_inputs(new, data).x)
    np.testing.assert_allclose(x[:, 0], [2320, 1010, 1010], rtol=1e-6)
    np.testing.assert_allclose(x[:, 1], [78.1, 3, 3], rtol=1e-6)
    path.write_text("\n".join(["people;area;y", "2.320;78,1;1", *lines, ""]))
    data = od.load(str(path), target="y", task="regression")
    x = data.x_scaling.undo(od.read_inputs(path, data).x)
    assert x[:, 0].min() > 999


def test_weights_are_of_any_unit():
    """Catches rows that no longer repeat where weights add up to one, and ties."""
    frame = pd.DataFrame({"town": list("abab") * 15, "size": [0.0, 1, 3, 0, 0, 1] * 10})
    weight = np.array([0.2, 0.2, 0.4, 0.1, 0.4, 0.1] * 10)
    names, rows = ["town", "size"], np.arange(60)
    for unit in (1 / 60, 1.0, 7.0):
        encoding, _ = od.TableEncoding.learned(
            frame, names, rows, "X", is_asked=True, weights=unit * weight
        )
        assert set(encoding.columns[0].categories) == {"a", "b"}
        assert encoding.columns[1].fill == 0.5


def indexed(tmp_path, index, name: str):
    """A table with a column before its own, as pandas writes an index."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30), "y": rng.normal(size=30)})
    frame.insert(0, name, index)
    frame.to_csv(tmp_path / "own.csv", index=False)
    return tmp_path / "own.csv"


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_index_is_not_learned_from(name, tmp_path):
    """Catches (seen) the number of a row among the features."""
    for index in (np.arange(30), np.arange(100, 40, -2)):
        data = load(indexed(tmp_path, index, name), target="y")
        assert tuple(data.feature_names) == ("a",)
        (note,) = [note for note in data.notes if "has no name" in note]
        assert "counts rows" in note
    asked = load(tmp_path / "own.csv", target="y", features=(name,))
    assert tuple(asked.feature_names) == (name,)


def test_a_column_without_a_name_is_refused(tmp_path):
    """Catches what no option can name and nobody can read in a report."""
    path = indexed(tmp_path, np.arange(30) % 7, "")
    with pytest.raises(od.DataError, match="no name for column 1: give it one, or `dr"):
        load(path, target="y")
    assert tuple(load(path, target="y", drop=("",)).feature_names) == ("a",)
    path = indexed(tmp_path, np.arange(30) % 7, "Unnamed: 0")
    assert len(load(path, target="y").feature_names) == 2


def test_text_with_a_nul_byte_is_refused(tmp_path):
    rows = [f"{i},{'ab'[i % 2]},{i % 5}.5" for i in range(30)]
    rows[4] = "4,a\x00,1.5"
    path = write(tmp_path, rows, "x,who,y")
    with pytest.raises(od.DataError, match="'who' has a NUL byte in row 4, counting"):
        load(path, target="y")
