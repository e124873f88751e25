"""The guide's own code, run from top to bottom with budgets cut.

It catches a name that the page forgot to import, and a network that a method refuses.
"""

import re
from pathlib import Path

import jax
import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
BUDGETS = r"(num_epochs|num_warmup|num_samples|num_draws)=\d+"


def blocks_of(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_my_network_runs(tmp_path: Path, monkeypatch):
    """Catches a line of the page that a user's own network does not survive."""
    monkeypatch.chdir(tmp_path)
    text = (GUIDE / "my_network.md").read_text(encoding="utf-8")
    blocks = blocks_of(text)
    assert len(blocks) == 6
    names: dict = {"__name__": "guide"}
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        for block in blocks:
            code = re.sub(BUDGETS, r"\1=3", block)
            exec(compile(code, "my_network.md", "exec"), names)
    assert {"laplace", "swag", "chains", "mean field"} <= set(names["fits"])
    assert (tmp_path / "network.npz").is_file()
