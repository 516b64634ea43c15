"""From the text of a rule to a formula; errors show their position."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tuplet.core.exceptions import InputError
from tuplet.models.rules.language.formula import (
    NUMBER,
    PLAIN,
    WORDS,
    And,
    Formula,
    Iff,
    Implies,
    Is,
    Label,
    Not,
    Or,
    Xor,
    require_shallow,
)

_SYMBOLS = {
    "iff": r"<->|<=>|↔|⇔",
    "implied by": r"<-|←",
    "implies": r"->|=>|→|⇒",
    "differs": r"!=|≠",
    "equals": r"==?",
    "and": r"&&?|∧",
    "or": r"\|\|?|∨",
    "xor": r"\^|⊕",
    "not": r"!|~|¬",
    "open": r"\(",
    "close": r"\)",
    "comma": r",",
    "colon": r":",
}
_TEXT = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
_TOKEN = re.compile(
    r"\s*(?:"
    + "|".join(
        [f"(?P<text>{_TEXT})", f"(?P<number>{NUMBER.pattern})", f"(?P<word>{PLAIN.pattern})"]
        + [f"(?P<s{i}>{pattern})" for i, pattern in enumerate(_SYMBOLS.values())]
    )
    + ")"
)
_NAMES = ("word", "text", "number")


class _Token(NamedTuple):
    """A word, text, number or sign, and where it starts."""

    kind: str
    value: Any
    position: int


def point_at(text: str, position: int) -> str:
    """Return the text with a caret below a position, each on a line of its own."""
    line = text.replace("\n", " ").replace("\t", " ")
    return f"\n  {line}\n  {' ' * position}^"


def scan(text: str) -> list[_Token]:
    """Return the tokens of a text, the last of them of the kind "end"."""
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            hint = " A quote is not closed." if text[start] in "\"'" else ""
            raise InputError(
                f"Rule: there is no sign {text[start]!r}.{hint} Names with such signs go in quotes."
                + point_at(text, start)
            )
        tokens.append(_token(match))
        place = match.end()
    return [*tokens, _Token("end", None, end)]


def _token(match: re.Match[str]) -> _Token:
    group = str(match.lastgroup)
    value, position = match.group(group), match.start(group)
    if group == "text":
        return _Token("text", unescape(value[1:-1]), position)
    if group == "number":
        number = float(value) if re.search("[.eE]", value) else int(value)
        return _Token("number", number, position)
    if group == "word":
        word = value.lower() if value in (value.lower(), value.upper()) else value
        return _Token(word if word in WORDS else "word", value, position)
    return _Token(list(_SYMBOLS)[int(group[1:])], value, position)


def unescape(inside: str) -> str:
    """Return text without the backslashes before signs; one before n is a line break."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], inside)


def parse(text: str, known: str = "") -> Formula:
    """Return the formula of a text.

    From the loosest to the tightest: `<->`, `->` (and `<-`), `|`, `xor`, `&`, `!`; also in words (`iff`,
    `implies`, `or`, `xor`, `and`, `not`). `a -> b -> c` is `a -> (b -> c)`.

    Parameters
    ----------
    text : str
    known : str
        The names that there are, for error messages.
    """
    try:
        reader = _Reader(text, scan(text))
        formula = reader.iff()
        reader.expect("end", "an operator (&, |, ->, <->, ...) or the end")
    except InputError as error:
        raise InputError(f"{error}\n{known}" if known else str(error)) from None
    return formula


class _Reader:
    """Recursive descent: a method for every level of the grammar."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self.text, self.tokens, self.place, self.depth = text, tokens, 0, 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.place]

    def take(self, *kinds: str) -> _Token | None:
        """Step over the next token if it is of one of these kinds."""
        token = self.token
        if token.kind not in kinds:
            return None
        self.place += 1
        return token

    def expect(self, kind: str, wanted: str) -> None:
        token = self.token
        if self.take(kind) is None:
            found = "the end" if token.kind == "end" else repr(self.text[token.position :].split()[0])
            raise InputError(f"Rule: expected {wanted}, found {found}." + point_at(self.text, token.position))

    def iff(self) -> Formula:
        left = self.implies()
        while self.take("iff"):
            left = Iff((left, self.implies()))
        return left

    def implies(self) -> Formula:
        left = self.disjunction()
        chain = [left]
        while self.take("implies"):
            chain.append(self.disjunction())
        if len(chain) > 1:
            *before, right = chain
            for part in reversed(before):
                right = Implies((part, right))
            return right
        while self.take("implied by"):
            left = Implies((self.disjunction(), left))
        return left

    def disjunction(self) -> Formula:
        parts = [self.exclusive()]
        while self.take("or"):
            parts.append(self.exclusive())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def exclusive(self) -> Formula:
        left = self.conjunction()
        while self.take("xor"):
            left = Xor((left, self.conjunction()))
        return left

    def conjunction(self) -> Formula:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negation(self) -> Formula:
        n_not = 0
        while self.take("not"):
            n_not += 1
        result = self.enclosed() if self.take("open") else self.leaf()
        for _ in range(n_not):
            result = Not((result,))
        return result

    def enclosed(self) -> Formula:
        self.depth += 1
        require_shallow(self.depth)
        inside = self.iff()
        self.expect("close", "an operator or ')'")
        self.depth -= 1
        return inside

    def leaf(self) -> Formula:
        token = self.token
        if self.take(*_NAMES) is None:
            self.expect("word", "a name, '!' or '('")
        if self.take("equals"):
            return Is(str(token.value), self.category(), token.position)
        if self.take("differs"):
            return Not((Is(str(token.value), self.category(), token.position),))
        return Label(str(token.value), token.position)

    def category(self) -> Any:
        token = self.token
        if self.take(*_NAMES) is None:
            self.expect("word", "a category")
        if token.kind == "word" and token.value in ("True", "False"):
            return token.value == "True"
        return token.value
