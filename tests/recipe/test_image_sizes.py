"""Images of a size that a network does not take are refused before they are read."""

import equinox as eqx
import jax
import numpy as np
import pytest

from ornstein import nn
from ornstein.cli import main
from ornstein.data import Data, Split
from ornstein.recipe import build_network, check_recipe, preset_recipe
from ornstein.recipe.models import check_sides

SIDES = (1, 8, 16, 27, 28, 29, 32, 33, 62, 63, 64, 96)
NETWORKS = {
    "lenet": lambda key: nn.LeNet(2, in_channels=3, key=key),
    "alexnet": lambda key: nn.AlexNet(2, width=0.1, key=key),
    "vgg16": lambda key: nn.VGG16(2, width=0.1, norm=None, key=key),
    "resnet-8": lambda key: nn.ResNet(8, 2, norm=None, key=key),
    "resnet-18": lambda key: nn.ResNet(18, 2, width=0.1, norm=None, key=key),
    "wide-resnet-10-1": lambda key: nn.WideResNet(10, 1, 2, norm=None, key=key),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_refused_is_what_the_network_cannot_take(name):
    """Catches a rule that is another than the network's own."""
    network = eqx.filter_eval_shape(NETWORKS[name], jax.random.key(0))
    for side in SIDES:
        x = jax.ShapeDtypeStruct((2, side, side, 3), np.float32)
        try:
            eqx.filter_eval_shape(lambda m, x: m(x), network, x)
            is_taken = True
        except ValueError:
            is_taken = False
        if is_taken:
            check_sides(name, (side, side), "photos", are_own=True)
        else:
            with pytest.raises(ValueError, match=f"{name} takes images of") as found:
                check_sides(name, (side, side), "photos", are_own=True)
            advised = int(str(found.value).split("`image_size` ")[1].split(",")[0])
            check_sides(name, (advised, advised), "photos", are_own=True)


def test_a_size_is_refused_before_anything_is_read(tmp_path, capsys):
    """The folder is empty: photographs are not looked for."""
    recipe = preset_recipe(str(tmp_path), model="ensemble", network="lenet")
    with pytest.raises(ValueError, match="`network` lenet takes images of 28 by 28"):
        check_recipe(recipe.changed(image_size=32))
    args = ["train", "--data", str(tmp_path), "--model", "ensemble"]
    assert main([*args, "--network", "lenet", "--image-size", "32"]) == 2
    said = capsys.readouterr().err
    assert "have 32 by 32: give --image-size 28, or use --network resnet-20" in said


def test_images_that_have_their_own_size():
    """Not the user's photographs: no --image-size is advised, which is refused."""
    x, y = np.zeros((4, 28, 32, 3), np.float32), np.arange(4, dtype=np.int32) % 2
    data = Data("photos", "classification", *[Split(x, y)] * 2, None, 2, ("a", "b"))
    recipe = preset_recipe("cifar10", model="ensemble", network="lenet")
    with pytest.raises(ValueError, match="have 28 by 32: use `network` resnet-20"):
        build_network(recipe, data, key=jax.random.key(0))
