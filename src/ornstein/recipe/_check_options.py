"""What a command's options say by themselves, before any data are read."""

from collections.abc import Collection

from ._check_sampling import check_sample_recipe
from ._hand_over import check_handed_over, is_handed_over
from ._recipe import Recipe
from ._sampling import SampleRecipe
from ._unread_options import check_given
from .checks import check_before_data, check_recipe
from .inputs import check_data_options


def check_options(recipe: Recipe | SampleRecipe, given: Collection[str] = ()) -> None:
    """Refuse a recipe that no run could carry out, whatever is in its files.

    Args:
        recipe: of a run that is to begin.
        given: names of the options that somebody gave: of these, all must be read.

    Raises:
        ValueError: naming an option.
    """
    if isinstance(recipe, SampleRecipe):
        check_sample_recipe(recipe)
        check_recipe(recipe.recipe)
        check_before_data(recipe.recipe)
    elif is_handed_over(recipe):
        check_handed_over(recipe)
        check_data_options(recipe.data, recipe.series)
    else:
        check_recipe(recipe)
        check_before_data(recipe)
    check_given(recipe, given)
