"""Options as the command line spells them."""

from .._sentence import Sentence


def flag(option: str) -> str:
    """`--batch-size` for `batch_size`."""
    return f"--{option.replace('_', '-')}"


def flagged(text: str) -> str:
    """A text with the options that it names as --flags; others as they are."""
    return text.spelt(flag) if isinstance(text, Sentence) else text


def said(error: BaseException) -> str:
    """What an error says, likewise."""
    sentence = error.args[0] if len(error.args) == 1 else None
    return flagged(sentence) if isinstance(sentence, Sentence) else str(error)
