"""Runs from recipes, and the figures and tables of the papers."""

from ._build import (
    SOLVERS as SOLVERS,
    build_likelihood as build_likelihood,
    build_stepsize as build_stepsize,
)
from ._corrupted import judge_corruptions as judge_corruptions
from ._dial import dial as dial, turned_models as turned_models
from ._families import MODELS as MODELS, build_model as build_model
from ._judge import (
    Judged as Judged,
    judge as judge,
    refuse_non_finite_predictions as refuse_non_finite_predictions,
)
from ._latent_models import is_told_by_series as is_told_by_series
from ._networks import build_network as build_network
from ._noise_sweep import (
    entropy_correlation as entropy_correlation,
    noise_sweep as noise_sweep,
)
from ._numbers import check_numbers as check_numbers
from ._ood import as_inputs as as_inputs, judge_ood as judge_ood
from ._options import (
    ModelName as ModelName,
    SolverName as SolverName,
)
from ._presets import (
    PRESETS as PRESETS,
    PresetName as PresetName,
    default_model as default_model,
    preset_recipe as preset_recipe,
)
from ._provenance import (
    device as device,
    provenance as provenance,
    versions as versions,
)
from ._recipe import Recipe as Recipe
from ._recipe_files import (
    list_recipes as list_recipes,
    load_recipe as load_recipe,
)
from ._registry import EXPERIMENTS as EXPERIMENTS
from ._rows import first_rows as first_rows, load_data as load_data
from ._sampling import (
    KernelName as KernelName,
    SampleRecipe as SampleRecipe,
    check_sampling as check_sampling,
    judge_samples as judge_samples,
    open_sampling as open_sampling,
    preset_sampling as preset_sampling,
    run_sampling as run_sampling,
)
from ._search import HELD_OUT as HELD_OUT, tune_recipe as tune_recipe
from ._series_inputs import SeriesInputs as SeriesInputs, read_series as read_series
from ._shelf import Shelf as Shelf
from ._study import Experiment as Experiment, ScaleName as ScaleName, Study as Study
from ._training import (
    Keys as Keys,
    Prepared as Prepared,
    prepare as prepare,
    train as train,
)
