"""Every choice of a run as options, and the run that they mean."""

from ._check_sampling import (
    check_read as check_read,
    check_sample_recipe as check_sample_recipe,
    check_sampling as check_sampling,
)
from ._export_run import Exported as Exported, description_of as description_of
from ._hand_over import (
    MAX_CHAIN_ROWS as MAX_CHAIN_ROWS,
    check_handed_over as check_handed_over,
    hand_over as hand_over,
    is_handed_over as is_handed_over,
)
from ._kernels import KERNELS as KERNELS
from ._provenance import (
    commit as commit,
    device as device,
    provenance as provenance,
    versions as versions,
)
from ._published import (
    ScaleName as ScaleName,
    list_recipes as list_recipes,
    load_recipe as load_recipe,
    model_name as model_name,
    recipe_names as recipe_names,
    with_seed as with_seed,
)
from ._recipe import Recipe as Recipe
from ._run_evaluation import RunEvaluation as RunEvaluation
from ._run_files import (
    SAMPLES as SAMPLES,
    check_data_there as check_data_there,
    check_kept as check_kept,
    check_own as check_own,
    final_path as final_path,
    is_sampled as is_sampled,
    keep_schema as keep_schema,
    keep_tuning as keep_tuning,
    kept_tuning as kept_tuning,
    origin_of_run as origin_of_run,
    read_recipe as read_recipe,
    read_sample_recipe as read_sample_recipe,
    save_final as save_final,
)
from ._run_prediction import (
    RunPrediction as RunPrediction,
    beside as beside,
    by_target as by_target,
    numbers_in_units as numbers_in_units,
)
from ._run_sampling import (
    check_members as check_members,
    find_mode as find_mode,
    has_starts as has_starts,
    mode_at_start as mode_at_start,
    open_sampling as open_sampling,
    run_sampling as run_sampling,
    sampled_prior as sampled_prior,
)
from ._sampling import (
    SampleRecipe as SampleRecipe,
    chains_at as chains_at,
    preset_sampling as preset_sampling,
)
from ._sampling_options import (
    KernelName as KernelName,
    SampledNetwork as SampledNetwork,
    starts_from_run as starts_from_run,
)
from ._search import (
    HELD_OUT as HELD_OUT,
    check_tuned as check_tuned,
    tune_recipe as tune_recipe,
)
from ._table_fit import (
    TableFit as TableFit,
    TablePrediction as TablePrediction,
    fit_table as fit_table,
    table_inputs as table_inputs,
    table_methods as table_methods,
    table_recipe as table_recipe,
    weighted_rows as weighted_rows,
)
from ._trained_run import TrainedRun as TrainedRun, load_run as load_run
from ._training import (
    Keys as Keys,
    Prepared as Prepared,
    fit_options as fit_options,
    kl_weight_of as kl_weight_of,
    prepare as prepare,
    train as train,
    with_points as with_points,
)
from ._unread_options import (
    POINTS as POINTS,
    check_options as check_options,
    unread_options as unread_options,
)
from .checks import check_recipe as check_recipe
from .inputs import (
    SeriesInputs as SeriesInputs,
    first_rows as first_rows,
    learned_span as learned_span,
    load_data as load_data,
    read_series as read_series,
)
from .models import (
    MODELS as MODELS,
    SOLVERS as SOLVERS,
    build_likelihood as build_likelihood,
    build_model as build_model,
    build_network as build_network,
    build_stepsize as build_stepsize,
    is_told_by_series as is_told_by_series,
)
from .options import (
    ModelName as ModelName,
    OptimiserName as OptimiserName,
    SolverName as SolverName,
    StartName as StartName,
    check_numbers as check_numbers,
)
from .presets import (
    PRESETS as PRESETS,
    PresetName as PresetName,
    default_model as default_model,
    preset_recipe as preset_recipe,
)
