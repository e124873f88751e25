"""Cells of Arrow's columns, of chunks that number their texts each for itself."""

import pyarrow as pa

from ornstein.data.shards._cells import as_texts, by_number


def test_each_chunk_has_its_own_numbers():
    """Catches numbers of one chunk that are read by another's texts."""
    cells = [["a", "b", None], ["b", "c"]]
    chunks = [pa.array(part).dictionary_encode() for part in cells]
    column = pa.chunked_array(chunks)
    found = by_number(column)
    assert [found.values[code] for code in found.codes] == ["a", "b", None, "b", "c"]
    texts = as_texts(column)
    assert texts.texts[texts.codes[2]] == "(empty)"
