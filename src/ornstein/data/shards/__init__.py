"""Files of rows that do not fit into memory, and one pass over them."""

from ._files import (
    KINDS as KINDS,
    is_image_folder as is_image_folder,
    kind_of_folder as kind_of_folder,
)
from ._load_images import load_images as load_images
from ._load_shards import is_sharded as is_sharded, load_shards as load_shards
