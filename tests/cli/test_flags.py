"""One sentence, as Python's arguments and as the command line's flags."""

import copy
import pickle

import pytest

from ornstein import _sentence
from ornstein._sentence import Choice, Option, OptionError, Sentence
from ornstein.cli._flags import flagged, said
from ornstein.data import DataError, DataNotFoundError, load

REMEDY = Sentence("give {kl_weight} {}", 1.0)
WHOLE = Sentence("{} is {!r}: {}.", Option("num_draws"), "{batch_size} --x", REMEDY)


def test_each_front_end_spells_options_its_way():
    """Catches an option inside a value or a remedy, and a value read as an option."""
    assert WHOLE == "`num_draws` is '{batch_size} --x': give `kl_weight` 1.0."
    assert flagged(WHOLE) == "--num-draws is '{batch_size} --x': give --kl-weight 1.0."
    assert flagged(copy.deepcopy(WHOLE)) == flagged(WHOLE)
    assert flagged("a_b {a_b} `a_b`") == "a_b {a_b} `a_b`"


def test_a_choice_is_code_or_flags():
    """Also inside another sentence. Catches (seen) code at the shell."""
    choice = Choice("`Heun()` or {x}", "{solver} heun")
    sentence = Sentence("Use {}: {}.", choice, Sentence("not {}", choice))
    assert sentence == "Use `Heun()` or {x}: not `Heun()` or {x}."
    assert flagged(sentence) == "Use --solver heun: not --solver heun."
    assert flagged(copy.deepcopy(sentence)) == flagged(sentence)


def test_errors_say_what_their_sentence_does():
    """Catches kinds of error whose sentence the command line does not find."""
    assert str(OptionError("{num_draws} {}", 2)) == "`num_draws` 2"
    assert said(OptionError("{num_draws} {}", 2)) == "--num-draws 2"
    assert said(DataNotFoundError(REMEDY)) == "give --kl-weight 1.0"
    assert said(_sentence.does_nothing("a_b", "c_d", "e")) == (
        "--a-b does nothing for --c-d e: leave it out."
    )
    assert said(FileNotFoundError(2, "No such file")) == "[Errno 2] No such file"


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))]
)
def test_a_copy_of_an_error_says_the_same(again):
    """Catches text of a user's read as a template, as from a pool of processes (seen:
    a file `a{b}.csv` became `` a`b`.csv ``, and `a{` ended the pool).
    """
    error = OptionError("{num_draws} {} {}", "a{b}.csv", "a{")
    error.add_note("twice")
    copied = again(error)
    assert said(copied) == said(error) == "--num-draws a{b}.csv a{"
    assert copied.__notes__ == ["twice"]


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"target": "y"}, "leave --target out"),
        ({"task": "regression"}, "leave --task out"),
        ({"split": 3}, "--seed draws another split"),
    ],
)
def test_data_that_have_no_such_option_are_told_by_flags(options, flag):
    """Catches `arguments` on the command line: ``leave `target` out`` (seen)."""
    with pytest.raises(DataError) as caught:
        load("digits", **options)
    assert flag in said(caught.value)
