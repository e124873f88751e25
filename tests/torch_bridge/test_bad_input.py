"""What a module refuses: one sentence each, before any work."""

import builtins
import subprocess
import sys

import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.nn import MLP

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
import ornstein.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("unchecked")


def module() -> "orn.torch.RandomFunction":
    model = orn.MeanField(MLP(3, 2, (4,), key=jr.key(0)), orn.GaussianPrior(1.0))
    return orn.torch.RandomFunction(model)


X = torch.zeros(4, 3)
REFUSED = {
    "numpy": (lambda: np.zeros((4, 3)), TypeError, "got numpy.ndarray: write torch.as"),
    "list": (lambda: [[1.0]], TypeError, "`x` must be a tensor, rows first, got float"),
    "nothing": (lambda: (), TypeError, "`x` must be a tensor, rows first, got tuple"),
    "meta": (lambda: X.to("meta"), ValueError, r"`x` is on meta .* x\.to\('cpu'\)"),
    "double": (lambda: X.double(), TypeError, r"x\.float\(\), or module\.double\(\)"),
    "half": (lambda: X.half(), TypeError, r"is float16 .* write x\.float\(\)\.$"),
    "sparse": (lambda: X.to_sparse(), TypeError, r"is sparse, .* write x\.to_dense"),
    "complex": (lambda: X.cfloat(), TypeError, "is complex64, .* takes real numbers"),
    "row": (lambda: X[0, 0], ValueError, r"write x\[None\] for a single example"),
    "no rows": (lambda: X[:0], ValueError, "`x` has 0 rows"),
    "unequal": (lambda: (X, X[:2]), ValueError, "`x` has 2 and 4 rows"),
    "features": (lambda: X[:, :2], ValueError, r"takes 3 numbers a row, and x has 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_inputs_that_are_refused(case: str):
    """Catches what would be a page of JAX's, or an answer to another question."""
    make, kind, match = REFUSED[case]
    with pytest.raises(kind, match=match) as caught:
        module()(make())
    assert "\n" not in str(caught.value)
    with pytest.raises(kind, match=match):
        module().draws(make(), 2)


def test_rows_of_a_block_are_checked_by_their_shape():
    """Catches a shape that only the compiler finds out."""
    with pytest.raises(ValueError, match=r"\(4, 2\), but this function takes rows of"):
        orn.torch.sdebnn(3, 2, width_sizes=(2,))(X[:, :2])
    images = orn.torch.sdebnn_for_images((1, 4, 4), 2, width=2, drift_widths=(2,))
    with pytest.raises(ValueError, match=r"takes rows of shape \(1, 4, 4\)"):
        images(torch.zeros(2, 4, 4, 1))


def test_a_module_that_jax_cannot_follow():
    """Catches a module on a device, or in a type, that this JAX does not have."""
    with pytest.raises(ValueError, match="on meta, where this JAX has no device"):
        module().to("meta")(X)
    with pytest.raises(TypeError, match=r"parameters are bfloat16, .*module\.float"):
        module().to(torch.bfloat16)(X.bfloat16())


def test_arguments_of_another_kind():
    """Catches an error deep inside for what is said at the door."""
    with pytest.raises(TypeError, match="`seed` must be a whole number, got str"):
        module()(X, seed="a")
    with pytest.raises(TypeError, match="`index` must be a whole number, got float"):
        module()(X, index=0.5)
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(ValueError, match=f"`index` .* 32 bits, .* got {value}"):
            module()(X, index=value)
    with pytest.raises(ValueError, match="`seed` must be a number of 64 bits, from"):
        module()(X, seed=2**70)
    for value in (2.5, "4", True):
        with pytest.raises(TypeError, match=r"must be a whole number, .* num_draws=16"):
            module().draws(X, value)
    with pytest.raises(ValueError, match="`num_draws` must be at least 1, got 0"):
        module().draws(X, 0)
    with pytest.raises(ValueError, match=r"got 0: write len\(dataset\)"):
        module()(X).divergence(0)
    with pytest.raises(ValueError, match='must be one of weights, got "noise"'):
        module().parameters_labelled("noise")
    with pytest.raises(TypeError, match="must be an `AbstractRandomFunction`, got Lin"):
        orn.torch.RandomFunction(torch.nn.Linear(3, 2))
    networks = [MLP(3, 2, (4,), key=key) for key in jr.split(jr.key(0), 2)]
    with pytest.raises(ValueError, match=r"2 members.*`RandomFunction\(ensemble\.memb"):
        orn.torch.RandomFunction(orn.Ensemble(networks))


def test_without_pytorch_a_sentence(monkeypatch: pytest.MonkeyPatch):
    """Catches a bare ModuleNotFoundError for who has not installed the extra."""
    imported = builtins.__import__

    def without(name, *args, **how):
        if name == "torch" and not (args and "ornstein" in str(args[3:])):
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return imported(name, *args, **how)

    for name in [n for n in sys.modules if n.startswith("ornstein.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(orn, "torch", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'ornstein\[torch\]'"):
        __import__("ornstein.torch")


def test_import_ornstein_does_not_import_torch():
    """Catches seconds that nobody asked for."""
    program = "import sys, ornstein; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
