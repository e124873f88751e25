"""Everything that refuses a recipe: by itself, with its data, with its model.

`prepare` goes through the three doors in turn.
"""

from ._check import (
    check_before_data as check_before_data,
    check_data as check_data,
    check_model as check_model,
    check_recipe as check_recipe,
)
from ._pairs import check_standard_prior as check_standard_prior
from ._unread import unread_by_model as unread_by_model
