"""Reports as a browser has them: opened in silence, and all of it drawn."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report.page import Page

from ornstein.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip(f"needs a browser: one of {', '.join(NAMES)}")


def opened(chromium: str, page: Path, *options: str) -> subprocess.CompletedProcess:
    program = [chromium, "--headless", "--no-sandbox", "--disable-gpu"]
    program += ["--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio"]
    program += ["--enable-logging=stderr", "--log-level=0", *options, page.as_uri()]
    return subprocess.run(
        program, capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.parametrize("name", ["classes", "numbers", "chains", "images", "both"])
def test_a_browser_opens_it_in_silence(name, chromium, request, tmp_path):
    """Catches an error on the console, and a figure that the parser drops."""
    names = ["classes", "ensemble"] if name == "both" else [name]
    runs = [request.getfixturevalue(one) for one in names]
    path = write_report(runs, tmp_path / "page.html")
    done = opened(chromium, path, "--dump-dom")
    assert "CONSOLE" not in done.stderr, done.stderr
    ours, theirs = Page(path.read_text(encoding="utf-8")), Page(done.stdout)
    for kind in ("figure", "svg", "path", "table", "section", "img"):
        assert len(theirs.all(kind)) == len(ours.all(kind)), kind
    assert theirs.text("main") == ours.text("main")


def test_the_console_is_heard(chromium, tmp_path):
    """Catches a silence that is always there: a planted error is seen."""
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><script>undefined_name()</script>")
    assert "CONSOLE" in opened(chromium, page, "--dump-dom").stderr


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_both_schemes_are_drawn(scheme, chromium, classes, tmp_path):
    """Catches a style sheet that does not follow the scheme: the corner's colour."""
    shot = tmp_path / "shot.png"
    options = [f"--blink-settings=preferredColorScheme={scheme}"]
    options += ["--window-size=400,800", f"--screenshot={shot}"]
    opened(chromium, classes / "report.html", *options)
    with Image.open(shot) as image:
        grey = np.asarray(image.convert("L"), int)
    assert grey[1, 1] < 60 if scheme == 0 else grey[1, 1] > 240
    assert grey.max() - grey.min() > 150  # text is there


def test_a_narrow_screen_scrolls_down_alone(chromium, classes, tmp_path):
    """Catches a table or figure that makes the page wider than a telephone."""
    width = "document.documentElement.scrollWidth"
    script = f"<script>document.title = `wide: ${{{width}}};`</script>"
    text = (classes / "report.html").read_text(encoding="utf-8")
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    done = opened(chromium, page, "--window-size=500,800", "--dump-dom")
    wide = re.search(r"<title>wide: (\d+);</title>", done.stdout)
    assert wide is not None
    assert int(wide[1]) <= 500
