"""What a data set is, as its name alone tells."""

from pathlib import Path

from ...data import expanded, kind_of_folder

IN_MEMORY = "table in memory"
"""The name of data that no file holds."""


def kind_of_data(data: str) -> str:
    """`toy`, `vectors` or `images`, from the name of a data set alone."""
    if data.startswith("toy/"):
        return "toy"
    is_shards = kind_of_folder(expanded(data)) is not None
    if is_table(data) or is_shards or Path(data).suffix.lower() == ".npz":
        return "vectors"
    return "images"


def is_table(data: str) -> bool:
    """Whether the name of a data set alone says that it is a table."""
    suffix = Path(data).suffix.lower()
    is_named = data == IN_MEMORY or data.startswith("uci/")
    return is_named or suffix in (".csv", ".parquet")
