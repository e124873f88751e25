"""scikit-learn's own checks of an estimator, by method."""

import logging

import pytest
from programs import forget_programs_if_many
from sklearn.utils.estimator_checks import check_estimator

from ornstein.sklearn import BayesianClassifier, BayesianRegressor

# Of narrow networks, which compile in half the time.
SMALL = {"width": "8"}
CHAINS = SMALL | {
    "num_warmup": 40,
    "num_samples": 20,
    "num_integration_steps": 10,
    "num_chains": 2,
}
SGLD = {"num_warmup": 500, "num_samples": 20, "thin": 10, "num_chains": 2}
STEPS = SMALL | {"steps": 400, "test_draws": 8}
FAST = {
    "auto": CHAINS,
    "mean-field": STEPS,
    "hmc": CHAINS,
    "sgld": SMALL | SGLD,
    "implicit": STEPS,
    "sdebnn": STEPS | {"drift_widths": "8", "dt": 0.5},
}
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "rows of weight 2 and rows that are repeated have the same posterior, which "
        "chains and minibatches approach on other ways: see test_estimators.py"
    ),
    "check_do_not_raise_errors_in_init_or_set_params": (
        "this suite checks the types of arguments, which `__init__` itself does not"
    ),
}
IN_EVERY_RUN = ("mean-field",)


@pytest.mark.parametrize("kind", [BayesianClassifier, BayesianRegressor])
@pytest.mark.parametrize(
    "method",
    [m if m in IN_EVERY_RUN else pytest.param(m, marks=pytest.mark.slow) for m in FAST],
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it(kind, method):
    """Catches whatever scikit-learn's checks do: shapes, types, names, clones, NaN."""
    logging.getLogger("ornstein").setLevel(logging.ERROR)
    estimator = kind(method, options=FAST[method], random_state=0)
    found = check_estimator(
        estimator,
        expected_failed_checks=EXPECTED,
        on_fail=None,
        on_skip=None,
        callback=lambda **check: forget_programs_if_many(),
    )
    failed = [
        f"{check['check_name']}: {check['exception']!r}"
        for check in found
        if check["status"] == "failed"
    ]
    assert not failed, failed
    assert sum(check["status"] == "passed" for check in found) > 40
