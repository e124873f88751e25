"""The guide's page, run from top to bottom."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch (extra `torch`)")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "pytorch.md"


@pytest.mark.usefixtures("unchecked")
def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Catches an example that its reader cannot run, and a loop that does not train."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    names: dict = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["loss"].item() > 0
    assert names["probs"].sum(-1).allclose(names["probs"].new_ones(256))
    assert names["prediction"].mean.shape == (8, 10)
