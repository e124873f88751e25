"""What every report is: well formed, alone, and to be read without eyes or mouse."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from report.page import Page

from ornstein.report import write_report

RUNS = ["classes", "numbers", "chains", "images", "both"]
WANTED = {
    "classes": ["Reliability", "Confidence", "Total = expected", "Entropy of right"],
    "numbers": ["Calibration of quantiles", "Predicted and true", "Variance = noise"],
    "chains": ["R-hat of outputs", "Effective sample sizes", "Trace 1", "Energy"],
    "images": ["Reliability", "Log likelihood of training rows"],
    "both": ["Reliability of the runs", "Error of the rows that are kept"],
}


@pytest.fixture(scope="module", params=RUNS)
def page(request, tmp_path_factory) -> tuple[str, str, Page]:
    names = ["classes", "ensemble"] if request.param == "both" else [request.param]
    runs = [request.getfixturevalue(name) for name in names]
    path = tmp_path_factory.mktemp("page") / "page.html"
    text = write_report(runs, path).read_text(encoding="utf-8")
    return request.param, text, Page(text)


def test_every_element_is_closed(page):
    """Catches markup that a browser has to guess at."""
    assert page[2].faults == []


def test_ids_are_unique_and_links_lead_somewhere(page):
    """Catches two figures with one id, whose clips and names would be the first's."""
    elements = page[2].elements
    counts = Counter(e.attributes["id"] for e in elements if "id" in e.attributes)
    assert max(counts.values()) == 1
    for element in elements:
        for name in ("aria-labelledby", "aria-describedby"):
            for id_ in element.attributes.get(name, "").split():
                assert id_ in counts
        href = element.attributes.get("href", "")
        if href.startswith("#"):
            assert href[1:] in counts
        clip = re.fullmatch(r"url\(#(.*)\)", element.attributes.get("clip-path", ""))
        assert clip is None or clip[1] in counts


def test_nothing_is_fetched_and_nothing_runs(page):
    """Catches an address, a script, or a policy that would let one run."""
    _, text, parsed = page
    style = parsed.text("style")
    assert "@import" not in style
    assert "url(" not in style
    assert not parsed.all("script")
    for element in parsed.elements:
        assert not any(name.startswith("on") for name in element.attributes)
        for name in ("src", "href", "srcset", "xlink:href", "action"):
            value = element.attributes.get(name, "#")
            assert value.startswith(("#", "data:")), (element.name, value)
    (policy,) = [e for e in parsed.all("meta") if "http-equiv" in e.attributes]
    assert policy.attributes["content"].startswith("default-src 'none'")
    assert "script-src" not in text


def test_headings_are_in_order(page):
    """Catches a level that is left out: one h1, and no step down by two."""
    levels = [
        int(e.name[1]) for e in page[2].elements if re.fullmatch("h[1-6]", e.name)
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    for above, below in itertools.pairwise(levels):
        assert below <= above + 1, levels


def test_landmarks_and_the_link_past_them(page):
    parsed = page[2]
    for name in ("header", "nav", "main", "footer"):
        assert len(parsed.all(name)) == 1, name
    links = [e for e in parsed.elements if e.name == "a"]
    assert links[0].attributes["href"] == "#main"
    (html,) = parsed.all("html")
    assert html.attributes["lang"] == "en"
    assert parsed.text("title").strip()


def test_pictures_have_words(page):
    """Catches a figure that says nothing to who does not see it."""
    parsed = page[2]
    assert len(parsed.all("figure")) == len(parsed.all("figcaption"))
    assert len(parsed.all("svg")) >= 2
    for svg in parsed.all("svg"):
        assert svg.attributes["role"] == "img"
        assert svg.attributes["aria-labelledby"]
    for image in parsed.all("img"):
        assert image.attributes["alt"]


def test_tables_have_headers_with_scopes(page):
    parsed = page[2]
    assert parsed.all("table")
    assert len(parsed.all("caption")) == len(parsed.all("table"))
    for header in parsed.all("th"):
        assert header.attributes["scope"] in ("col", "row")
    for holder in parsed.all("div"):
        if holder.attributes.get("class") == "scroll":
            assert holder.attributes["tabindex"] == "0"
            assert holder.attributes["aria-label"]


def test_every_figure_is_there(page):
    """Catches a section that fell away."""
    name, _, parsed = page
    captions = parsed.text("figcaption")
    assert not [title for title in WANTED[name] if title not in captions]


def test_no_line_is_told_by_colour_alone(page):
    """Catches two lines of one picture with the same dashes, but for many chains."""
    text = page[1]
    for svg in re.findall("<svg.*?</svg>", text, re.S):
        lines = re.findall(r'<path d="[^"]*" class="line (s\d) (d\d)"', svg)
        dashes = [dash for _, dash in lines]
        assert len(set(dashes)) == len(dashes), dashes


def test_no_number_is_nan(page):
    text = page[1]
    assert not re.search(r"\b(nan|inf|None)\b", Page(text).text("main"))
    assert "NaN" not in text


def test_the_same_run_gives_the_same_bytes(classes: Path, tmp_path: Path):
    """Catches a date of today, an order of a set, or an id that is drawn."""
    pages = [write_report(classes, tmp_path / f"{i}.html") for i in range(2)]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert pages[0].read_bytes() == (classes / "report.html").read_bytes()


def test_names_of_the_data_are_text(classes: Path, tmp_path: Path):
    """Catches a name of a column or class that becomes markup, or turns the text."""
    text = write_report(classes, tmp_path / "page.html").read_text(encoding="utf-8")
    parsed = Page(text)
    assert "<script>alert(1)</script>" in parsed.text("main")
    assert "<b>bad</b>" in parsed.text("main")
    assert 'a "b" & c' in parsed.text("main")
    assert "<script" not in text
    assert "<b>bad" not in text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
