"""Several rules together, as text, JSON and HTML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, final, overload

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.joint.inference.factor import RuleFactor
from tuplet.models.rules.language.compile import compile_rules
from tuplet.models.rules.language.formula import NUMBER, Is
from tuplet.models.rules.language.names import Names
from tuplet.models.rules.language.parser import point_at, scan, unescape
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.space.classes import ClassSpace

_HEAD = re.compile(
    rf"\s*(?:\[(?P<name>(?:[^\]\\]|\\.)*)\]\s*)?(?:(?P<learned>learned)\s*)?(?P<p>{NUMBER.pattern})?\s*:"
)
_NOISY_OR = re.compile(r"\s*noisy_or\s*\(")
_FORMAT = "tuplet rules"


@final
@dataclass(frozen=True)
class RuleSet(Sequence[Rule | NoisyOr]):
    """A list of rules that can be written to text and JSON and read again.

    In text every rule is a line, `[name] p: formula`, of which name and p may be missing; "learned" before p
    means that a model may change it, and lines that start with # are remarks.

    Parameters
    ----------
    rules : iterable of str, Rule or NoisyOr
        Text is read as a line.

    Examples
    --------
    >>> rules = RuleSet(["0.8: (high & standing) -> overhead", "walking <-> gait"])
    >>> rules[0]
    Rule('(high & standing) -> overhead', 0.8)
    >>> RuleSet.from_json(rules.to_json()) == rules
    True
    >>> print(rules.to_text())
    0.8: (high & standing) -> overhead
    1.0: walking <-> gait
    """

    rules: tuple[Rule | NoisyOr, ...]

    def __init__(self, rules: Iterable[str | Rule | NoisyOr] = ()) -> None:
        if isinstance(rules, str | Rule | NoisyOr):
            rules = [rules]
        if not isinstance(rules, Iterable):
            raise InputError(f"Rules must be a list of text, Rule or NoisyOr, found {rules!r}.")
        object.__setattr__(self, "rules", tuple(map(_as_rule, rules)))

    @overload
    def __getitem__(self, index: int) -> Rule | NoisyOr: ...
    @overload
    def __getitem__(self, index: slice) -> RuleSet: ...
    def __getitem__(self, index: int | slice) -> Rule | NoisyOr | RuleSet:
        """Return one rule, or several as a set."""
        return RuleSet(self.rules[index]) if isinstance(index, slice) else self.rules[index]

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule | NoisyOr]:
        return iter(self.rules)

    def __add__(self, other: Iterable[str | Rule | NoisyOr]) -> RuleSet:
        return RuleSet([*self.rules, *RuleSet(other)])

    def without(self, which: Iterable[int | str | Rule | NoisyOr], space: ClassSpace) -> RuleSet:
        """Return the rules that are left when some go.

        Parameters
        ----------
        which : iterable of int, str, Rule or NoisyOr
            Positions (from 0, or from the end if negative), names, texts, or rules themselves.
        space : ClassSpace
            The class variables of the rules; a rule can also be given by its text in explanations.
        """
        gone = {self._position(one, space) for one in which}
        return RuleSet([rule for k, rule in enumerate(self.rules) if k not in gone])

    def _position(self, which: int | str | Rule | NoisyOr, space: ClassSpace) -> int:
        if isinstance(which, int | np.integer) and not isinstance(which, bool):
            if -len(self) <= which < len(self):
                return int(which) % len(self)
            found = []
        elif isinstance(which, str):
            names = [(rule.name, rule.text, rule.title) for rule in self.rules]
            found = [k for k, factor in enumerate(self.compile(space)) if which in (*names[k], factor.text)]
        else:
            found = [k for k, rule in enumerate(self.rules) if rule == which][:1]  # equal ones are as good
        if len(found) > 1:
            places = ", ".join(map(str, found))
            raise InputError(f"Several rules are called {which!r}; give the position of one: {places}.")
        if not found:
            raise InputError(f"There is no rule {which!r}; there are {len(self)}:\n{self}")
        return found[0]

    def without_variable(self, variable: int, space: ClassSpace) -> RuleSet:
        """Return the rules that do not name a variable, given by its position."""
        factors = self.compile(space)
        return RuleSet([rule for rule, f in zip(self.rules, factors, strict=True) if variable not in f.scope])

    def settled(self, who: str, learner: str) -> RuleSet:
        """Return the rules; an error of `who` if a probability is still to be learned, by `learner`."""
        for rule in self.rules:
            if rule.pending:
                raise InputError(
                    f"{who}: the probability of the rule {rule.title!r} is still to be learned; {learner}"
                    " does it, or give it a number."
                )
        return self

    def compile(self, space: ClassSpace) -> tuple[RuleFactor, ...]:
        """Return the factors of the rules; see `compile_rules`."""
        return compile_rules(self.rules, space)

    # -- text ---------------------------------------------------------------------------------------------

    def to_text(self) -> str:
        """Return the rules as lines that `from_text` reads."""
        return "\n".join(_line(rule) for rule in self.rules)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read rules from lines."""
        # Only "\n" ends a line: it is the only break that names and quotes escape.
        lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
        return cls(lines)

    # -- JSON ---------------------------------------------------------------------------------------------

    def to_json(self, indent: int | None = 2) -> str:
        """Return the rules as JSON."""
        content = {"format": _FORMAT, "version": 1, "rules": [_record(rule) for rule in self.rules]}
        return json.dumps(content, indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read rules from JSON that `to_json` wrote."""
        try:
            content = json.loads(text)
            records = content["rules"]
            if content["format"] != _FORMAT or content["version"] != 1:
                raise ValueError("another format")
            return cls([_from_record(record) for record in records])
        except InputError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                f"RuleSet.from_json: this is not JSON of rules as written by to_json ({error!r})."
            ) from None

    # -- for people ---------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "\n".join(f"{i}. {rule}" for i, rule in enumerate(self.rules, start=1)) or "no rules"

    def __repr__(self) -> str:
        return f"RuleSet({list(self.rules)!r})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{i}</td><td style='text-align:left'>{html.escape(_sentence(rule))}</td>"
            f"<td>{rule.p:.4g}</td><td>{_origin(rule)}</td></tr>"
            for i, rule in enumerate(self.rules, start=1)
        )
        head = "<tr><th></th><th style='text-align:left'>rule</th><th>p</th><th></th></tr>"
        return f"<table style='color:inherit'><thead>{head}</thead><tbody>{rows}</tbody></table>"


def read_rules(rules: Iterable[str | Rule | NoisyOr], space: ClassSpace) -> RuleSet:
    """Read rules about the variables of a space; an error in a text also lists the names."""
    try:
        return RuleSet(rules)
    except InputError as error:
        raise InputError(f"{error}\n{Names(space)}") from None


def _sentence(rule: Rule | NoisyOr) -> str:
    text = rule.text if isinstance(rule, Rule) else rule.sentence()
    return f"{rule.name}: {text}" if rule.name else text


def _origin(rule: Rule | NoisyOr) -> str:
    if rule.pending:
        return "to be learned"
    return "learned" if rule.learned else "given"


def _as_rule(rule: Any) -> Rule | NoisyOr:
    if isinstance(rule, Rule | NoisyOr):
        return rule
    if isinstance(rule, str):
        return _read_line(rule)
    raise InputError(f"A rule must be text, a Rule or a NoisyOr, found {type(rule).__name__}.")


def _line(rule: Rule | NoisyOr) -> str:
    escaped = re.sub(r"([]\\])", r"\\\1", rule.name or "").replace("\n", "\\n")
    name = f"[{escaped}] " if rule.name else ""
    text = str(rule.formula) if isinstance(rule, Rule) and "\n" in rule.text else rule.text
    words = ["learned"] * rule.learned + [repr(rule.p)] * (not rule.pending)
    return f"{name}{' '.join(words)}: {text}"


def _read_line(line: str) -> Rule | NoisyOr:
    head = _HEAD.match(line)
    body = line[head.end() :] if head else line
    name = head["name"] if head else None
    name = None if name is None else unescape(name)
    learned = bool(head and head["learned"])
    p = float(head["p"]) if head and head["p"] else None
    if _NOISY_OR.match(body):
        if learned and p is None:
            raise InputError(
                f"Rule: the probability of a noisy_or is given, not learned: `learned 0.9: {body}`."
            )
        return NoisyOr(_read_noisy_or(body.strip()), 1.0 if p is None else p, name, learned)
    return Rule(body.strip(), p if p is not None else "learn" if learned else 1.0, name, learned)


def _read_noisy_or(body: str) -> dict[str, dict[Any, float]]:
    """Read `noisy_or(variable == category: q, ...)`."""
    tokens = scan(body)
    inhibitions: dict[str, dict[Any, float]] = {}
    place = 2
    pattern = ("name", "equals", "name", "colon", "number")
    while True:
        for offset, wanted in enumerate(pattern):
            token = tokens[min(place + offset, len(tokens) - 1)]
            kinds = ("word", "text", "number") if wanted == "name" else (wanted,)
            if token.kind not in kinds:
                raise InputError(
                    "Rule: noisy_or is written `noisy_or(variable == category: q, ...)`."
                    + point_at(body, token.position)
                )
        category = tokens[place + 2]
        value = category.value
        if category.kind == "word" and value in ("True", "False"):
            value = value == "True"
        inhibitions.setdefault(str(tokens[place].value), {})[value] = float(tokens[place + 4].value)
        place += len(pattern)
        if tokens[place].kind == "close" and tokens[place + 1].kind == "end":
            return inhibitions
        if tokens[place].kind != "comma":
            raise InputError("Rule: expected ',' or ')'." + point_at(body, tokens[place].position))
        place += 1


def _record(rule: Rule | NoisyOr) -> dict[str, Any]:
    record: dict[str, Any] = {"name": rule.name} if rule.name else {}
    if isinstance(rule, Rule):
        record["formula"] = rule.text
    else:
        record["noisy_or"] = {v: [[c, q] for c, q in given.items()] for v, given in rule.inhibitions.items()}
    return record | {"p": "learn" if rule.pending else rule.p, "learned": rule.learned}


def _from_record(record: dict[str, Any]) -> Rule | NoisyOr:
    name, learned = record.get("name"), bool(record.get("learned", False))
    if "formula" in record:
        return Rule(record["formula"], record["p"], name, learned)
    given = {v: {Is(v, c).category: q for c, q in pairs} for v, pairs in record["noisy_or"].items()}
    return NoisyOr(given, record["p"], name, learned)
