"""Images: by name, from folders and from the hub, and random changes to them."""

from ._augment import (
    AbstractAugmentation as AbstractAugmentation,
    Compose as Compose,
    RandomCrop as RandomCrop,
    RandomFlip as RandomFlip,
    RandomShift as RandomShift,
    default_augmentation as default_augmentation,
)
from ._bytes import ByteScale as ByteScale, Images as Images
from ._digits import digits as digits
from ._hub import HUB_SETS as HUB_SETS, hub_set as hub_set, read_parquet as read_parquet
from ._image_folder import (
    Classes as Classes,
    channels_of as channels_of,
    check_every_class as check_every_class,
    check_image_size as check_image_size,
    class_folders as class_folders,
    find_classes as find_classes,
    image_folder as image_folder,
    images_below as images_below,
    labelled_files as labelled_files,
    read_images as read_images,
    read_labelled_images as read_labelled_images,
    relative_names as relative_names,
)
from ._pixels import (
    ImageFit as ImageFit,
    check_shape as check_shape,
    decode_one as decode_one,
    open_image as open_image,
    read_encoded as read_encoded,
)
from ._suffixes import SUFFIXES as SUFFIXES, unread_notes as unread_notes
