"""What an audit says."""

import dataclasses
import math
import textwrap
from typing import Any, Literal, NamedTuple

Verdict = Literal["does nothing", "in between", "does"]
"""Whether a posterior does anything: see `audit`."""

_WIDTH = 88


class Relative(NamedTuple):
    """The fit, or a relative of it, on the test rows.

    Attributes:
        name: in words.
        kind: `"fit"`, `"put back"` (q is p in some parts), `"silenced"` (every q at its
            mean), `"twin"` (trained), or `"rescaled"` (a twin whose noise scale
            collapsed, with the fit's own scale).
        scores: `nll` (nats a row, or a value of series) with `nll_se`, `ece` or
            `coverage_90`, and `auroc_NAME` of strange inputs; empty where predictions
            are no numbers.
        gain: by how many nats its NLL is above the fit's; infinite where its
            predictions are no numbers.
        gain_se: the standard error of that: of paired differences over rows and, added
            in quadrature, of the draws of both.
        draws_se: the part of draws, which more of them make smaller.
        draws_bias: how far so few draws move `gain` in the mean, by a jackknife.
    """

    name: str
    kind: str
    scores: dict[str, float]
    gain: float
    gain_se: float
    draws_se: float
    draws_bias: float = 0.0

    @property
    def settled_gain(self) -> float:
        """The gain without that bias, as many draws would have it: what counts."""
        return self.gain - self.draws_bias

    def as_row(self) -> dict[str, Any]:
        """One line of a table."""
        scores = dict(self.scores)
        nll = scores.pop("nll", math.inf)
        scores.pop("nll_se", None)  # of the difference it is another, and smaller
        difference = {"difference": self.gain, "its_se": self.gain_se}
        difference["se_of_draws"] = self.draws_se
        difference["bias_of_draws"] = self.draws_bias
        return {"what": self.name, "nll": nll, **difference, **scores}


@dataclasses.dataclass(frozen=True)
class Audit:
    """Whether a posterior does anything, and what says so; its `str` is for people.

    Attributes:
        verdict: `"does nothing"`, `"in between"` or `"does"`: see `audit`.
        sentence: the same with its reasons.
        relatives: the fit, and what it was compared with.
        kl: spent, nats of the whole data set, by its terms; empty without a bound.
        log_likelihood_bought: of the training rows, nats: the expected log likelihood
            under q, less that with q put back to p; `None` without a bound. It is more
            than the KL where the bound prefers q to p.
        log_likelihood_bought_se: its standard error over draws (and over rows, of which
            more than 10,000 are a sample); `None` without a bound.
        num_data: training rows.
    """

    verdict: Verdict
    sentence: str
    relatives: tuple[Relative, ...]
    kl: dict[str, float]
    log_likelihood_bought: float | None
    log_likelihood_bought_se: float | None
    num_data: int

    def to_json(self) -> dict[str, Any]:
        """As JSON objects; `None` for what is no finite number."""
        return _finite(
            {
                "verdict": self.verdict,
                "sentence": self.sentence,
                "relatives": [relative._asdict() for relative in self.relatives],
                "kl": self.kl,
                "log_likelihood_bought": self.log_likelihood_bought,
                "log_likelihood_bought_se": self.log_likelihood_bought_se,
                "num_data": self.num_data,
            }
        )

    def __str__(self) -> str:
        """A table, what the posterior cost and bought, and the sentence."""
        rows = [relative.as_row() for relative in self.relatives]
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[name.replace("_", " ") for name in names]]
        lines += [[_shown(row.get(name)) for name in names] for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = lambda line: map(str.ljust, line, widths)
        said = [*("  ".join(padded(line)).rstrip() for line in lines), ""]
        if self.log_likelihood_bought is not None:
            said.append(self.spent_and_bought)
        return "\n".join([*said, textwrap.fill(self.sentence, _WIDTH)])

    @property
    def spent_and_bought(self) -> str:
        """What the KL is, and what it bought, in a line."""
        if self.log_likelihood_bought is None:
            return "No bound: what this posterior spends is not known."
        parts = [
            f"{name.removeprefix('kl_')} {value:.4g}"
            for name, value in self.kl.items()
            if name != "kl"
        ]
        return (
            f"KL spent {self.kl['kl']:.4g} nats ({', '.join(parts)}); training log "
            f"likelihood bought {self.log_likelihood_bought:.4g} ± "
            f"{self.log_likelihood_bought_se:.2g} nats of {self.num_data} rows"
        )


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    is_number = not isinstance(value, float) or math.isfinite(value)
    return value if is_number else None
