"""What is kept on disk: run folders, checkpoints, models, sparse networks."""

from ._checkpoint import (
    checkpoints as checkpoints,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from ._leaves import named_arrays as named_arrays, with_arrays as with_arrays
from ._model_file import (
    load_hyperparameters as load_hyperparameters,
    load_model as load_model,
    refuse_non_finite as refuse_non_finite,
    save_model as save_model,
)
from ._run_folder import (
    RunFolder as RunFolder,
    creating as creating,
    is_unused as is_unused,
    put_back as put_back,
)
from ._sparse_file import load_sparse as load_sparse, save_sparse as save_sparse
