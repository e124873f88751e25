"""Text that a spreadsheet would run: marked when it is written, as it was when read."""

import re

_IS_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_IS_NUMBER = re.compile(r"[+-]?(?=[\d.,]*\d)[\d.,]+([eE][+-]?\d+)?")


def escaped(text: str) -> str:
    """Text for a cell of a CSV file: a quote before what would be a formula.

    Spreadsheets run cells that begin with one of = + - @, a tab or a carriage return,
    and take what follows a quote as text. Numbers stay as they are, with decimals after
    a point or a comma, and `unescaped` is the inverse.

    References:
        OWASP, *CSV Injection*, owasp.org/www-community/attacks/CSV_Injection.
    """
    is_formula = _IS_FORMULA.match(text) and not _IS_NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def unescaped(text: str) -> str:
    """Text of a cell as it was before `escaped`."""
    is_escaped = text.startswith("'") and _IS_FORMULA.match(text)
    return text[1:] if is_escaped else text
