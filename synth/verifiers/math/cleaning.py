"""One spelling for the many ways in which the same formula is typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

UNICODE: Final = str.maketrans(
    {
        "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "\\times ", "\u00b7": "\\cdot ", "\u22c5": "\\cdot ",
        "\u00f7": "/", "\u03c0": "\\pi ", "\u221e": "\\infty ", "\u2264": "\\le ", "\u2265": "\\ge ", "\u2260": "\\ne ",
        "\u00b0": "^\\circ ", "\u222a": "\\cup ", "\u2229": "\\cap ", "\u2208": "\\in ", "\u00b1": "\\pm ",
        "\u2213": "\\mp ", "\u211d": "\\mathbb{R}", "\u2205": "\\emptyset ", "\u2248": "\\approx ", "\u2044": "/",
        "\u00bd": "\\frac{1}{2}", "\u00bc": "\\frac{1}{4}", "\u00be": "\\frac{3}{4}", "\u2153": "\\frac{1}{3}",
        "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2032": "'", "\u20ac": "", "\u00a3": "", "\u00a5": "",
        "\u03b8": "\\theta ", "\u03b1": "\\alpha ", "\u03b2": "\\beta ", "\u03bb": "\\lambda ", "\u00b2": "^{2}",
        "\u00b3": "^{3}", "\uff0c": ",", "\u2261": "\\equiv ",
    }
)  # fmt: skip

Put = str | Callable[[re.Match[str]], str]


def _repeating(match: re.Match[str]) -> str:
    """0.1\\overline{6} as the fraction that it is: 15/90."""
    whole, first, period = match[1] or "0", match[2], match[3]
    above = int(whole + first + period) - int(whole + first)
    return f"(\\frac{{{above}}}{{{(10 ** len(period) - 1) * 10 ** len(first)}}})"


_RULES: Final[list[tuple[str, Put]]] = [
    (r"(?<![\d.])(\d{0,20})\.(\d{0,20})\\(?:overline|bar|dot|overset\{\\?\.\})\s*\{?(\d{1,20})\}?", _repeating),
    (r"(?<!\\)\\[!]\s*", ""),
    (r"\\{2,}(?=[A-Za-z]{2})(?![^&]*\\end\{)", r"\\"),
    (r"\u221a\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\u221a\s*(\w+)", r"\\sqrt{\1}"),
    (r"\\(?:left|right|middle)\s*\.", ""),
    (r"\\(?:left|right|middle|[bB]ig{1,2}[lrm]?|displaystyle|textstyle|limits|nolimits|mathstrut)(?![A-Za-z])", ""),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    (r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
    (r"(?<=\d)(?:\\,|~|(?<!\\)\\ )(?=\d{3}(?!\d))", " "),
    (r"(?<!\\)\\(?:[,:;>]|quad|qquad|hspace\{[^{}]*\})(?![A-Za-z])|~|(?<!\\)\\ ", " "),
    (r"(?<=\d)\{,\}(?=\d)", "\x01"),
    (r"\\\$\s*(\d[\d.,\x01]*)", r"\1 \\words{dollars}"),
    (r"\\?\$|\\(?:text)?(?:euro|pounds)(?![A-Za-z])", ""),
    (r"\\\(|\\\)|\\\[|(?<!\\)\\\](?![^&]*\\end)", " "),
    (r"\\(?:math(?:rm|bf|it|sf|cal|bb|frak|normal)|operatorname\*?|boldsymbol|bm|vec|overline|overrightarrow|hat|bar|widehat)"
     r"\s*\{([^{}]{1,40})\}", r"\\styled{\1}"),
    (r"\\(?:mathbb|Bbb)\s+?R", r"\\reals "),
    (r"\\styled\{R\}(?=\s*(?:$|\\setminus|\\backslash|-))|\\R(?![A-Za-z])", r"\\reals "),
    (r"\\(?:text(?:bf|rm|it|normal|sf|tt|up)?|mbox|hbox|textnormal)\s*\{([^{}]*)\}", r"\\words{\1}"),
    (r"\\words\{\s*(?:all\s+)?(?:real numbers|reals)\s*\}", r"\\reals "),
    (r"\\words\{[\s,]*(and|or|,|;)\s*\}", r" \1 "),
    (r"\\styled\{(e|i|d|[a-zA-Z])\}", r" \1 "),
    (r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree(?![A-Za-z])", r" \\degrees "),
    (r"\\degrees\s*([CF])(?![A-Za-z])", r" \\words{degrees \1}"),
    (r"\\%|(?<![A-Za-z])(?:percentage|percent|pct)(?![A-Za-z])|\\words\{\s*(?:percentage|percent|pct)\s*\}", "%"),
    (r"\\(?:leqslant|leqq|leq|le)(?![A-Za-z])|<=", "\x02"),
    (r"\\(?:geqslant|geqq|geq|ge)(?![A-Za-z])|>=", "\x03"),
    (r"\\lt(?![A-Za-z])", "<"),
    (r"\\gt(?![A-Za-z])", ">"),
    (r"\\(?:neq|ne)(?![A-Za-z])|!=|\\not\s*=", "\x04"),
    (r"\\(?:approx|simeq|doteq)(?![A-Za-z])", "\x05"),
    (r"\\(?:in)(?![A-Za-z])", "\x06"),
    (r"\\(?:cdot|times|ast)(?![A-Za-z])|\*\*?(?=\S)", lambda match: "^" if match[0] == "**" else "*"),
    (r"\\div(?![A-Za-z])", "/"),
    (r"\\(?:colon)(?![A-Za-z])", ":"),
    (r"\\lbrace|\\\{", "\x0e"),
    (r"\\rbrace|\\\}", "\x0f"),
    (r"\\(?:lvert|rvert|vert)(?![A-Za-z])|\\\|", "|"),
    (r"\\lbrack(?![A-Za-z])", "["),
    (r"\\rbrack(?![A-Za-z])", "]"),
    (r"\\(?:langle)(?![A-Za-z])", "("),
    (r"\\(?:rangle)(?![A-Za-z])", ")"),
]  # fmt: skip
_COMPILED = [(re.compile(pattern), put) for pattern, put in _RULES]


def clean(text: str) -> str:
    """The text in the spelling that the grammar reads. Control characters stand for operators with many names."""
    text = "".join(" " if ord(char) < 32 else char for char in text).translate(UNICODE)
    for pattern, put in _COMPILED:
        text = pattern.sub(put, text)
    return text.strip().rstrip(".,;:").strip()


def squeezed(text: str) -> str:
    """A text as words: what is the same here is the same answer, whatever it means."""
    text = re.sub(r"\\(?:words|styled)\{([^{}]*)\}", r"\1", clean(text))
    text = re.sub(r"\s+", " ", text.replace("\x01", "")).strip(" .,;:")
    letter = re.fullmatch(r"\(?\s*([A-Za-z])\s*\)?", text)
    return letter[1] if letter else text
