"""Files of rows that do not fit into memory, and one pass over them."""

from ._files import kind_of_folder as kind_of_folder
from ._load_shards import is_sharded as is_sharded, load_shards as load_shards
