"""Quality rules: thresholds on signals of the text, in presets named after the data sets that used them.

Every signal is measured of every text and stored, so that other thresholds can be tried without measuring again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

import text
from filters.quality_rules import PRESETS, Rule, is_file, load_rules
from filters.signals import MEANINGS, SIGNALS, measure, measure_tokens
from shards.step import Check, Judged
from shards.step import judge as split

JUDGED = pa.schema([("kept", pa.bool_()), ("rule", pa.string()), ("value", pa.float64()), ("threshold", pa.float64())])
EXPLAINED = pa.schema(
    [
        ("signal", pa.string()),
        ("value", pa.float64()),
        ("rule", pa.string()),
        ("bound", pa.string()),
        ("threshold", pa.float64()),
        ("passed", pa.bool_()),
        ("meaning", pa.string()),
    ]
)

Thresholds = dict[str, float | None]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Quality:
    """Drop a text at the first rule that it breaks; every signal of every text is kept as a column.

    A field named after a preset changes its thresholds: `gopher_quality: {min_words: 40}`; null switches a rule off.
    """

    name: ClassVar[str] = "quality"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    adds: ClassVar[pa.Schema] = pa.schema([])
    signals: ClassVar[pa.Schema] = SIGNALS
    libraries: ClassVar[tuple[str, ...]] = ()

    rules: tuple[str, ...] = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
    """Presets in order: names that are shipped, or paths of YAML files of one's own."""
    gopher_quality: Thresholds = Field(default_factory=dict)
    gopher_repetition: Thresholds = Field(default_factory=dict)
    c4: Thresholds = Field(default_factory=dict)
    c4_any_ending: Thresholds = Field(default_factory=dict)
    fineweb: Thresholds = Field(default_factory=dict)
    overrides: dict[str, Thresholds] = Field(default_factory=dict)
    """The same for presets of one's own, by the name of their file without .yaml."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        load_rules(self.rules, self.thresholds())
        return self

    def thresholds(self) -> dict[str, Thresholds]:
        """The changed thresholds, a mapping a preset."""
        shipped = {preset: getattr(self, preset) for preset in PRESETS}
        return {preset: changed for preset, changed in {**shipped, **self.overrides}.items() if changed}

    def files(self) -> tuple[str, ...]:
        """Presets of one's own, whose content shapes the answers."""
        return tuple(name for name in self.rules if is_file(name))

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in load_rules(self.rules, self.thresholds()) if rule.threshold is not None)

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        tokens = text.tokens_of(batch)
        signals = measure_tokens(tokens)
        return split(text.attach(batch, tokens), self.checks(signals), signals=signals)

    def checks(self, signals: pa.RecordBatch | pa.Table) -> list[Check]:
        """The rules applied to signals, stored or fresh: what this step would decide with no text at hand."""
        return [_check(rule, signals) for rule in self._rules]


def _check(rule: Rule, signals: pa.RecordBatch | pa.Table) -> Check:
    values = signals.column(rule.signal).to_numpy(zero_copy_only=False)
    return Check(rule=rule.code, failed=rule.failed(values), value=values, threshold=rule.threshold)


def judge(
    signals: pa.Table | pa.RecordBatch,
    rules: Sequence[str] = ("gopher_quality", "gopher_repetition", "c4", "fineweb"),
    **thresholds: Mapping[str, float | None],
) -> pa.Table:
    """Table(kept, rule, value, threshold), a row a text: the first rule that it breaks, nulls where it is kept.

    Exact for stored signals. `thresholds` are by preset: judge(signals, gopher_quality={"min_words": 40}).
    Raises ValueError for an unknown preset or rule, KeyError where a signal is missing.
    """
    checks = [_check(rule, signals) for rule in load_rules(rules, thresholds) if rule.threshold is not None]
    n = signals.num_rows
    failed = np.stack([np.zeros(n, np.bool_), *(check.failed for check in checks)])
    first = failed.argmax(axis=0)  # 0, the row of no rule, where none fails
    values = np.stack([np.zeros(n), *(np.asarray(check.value) for check in checks)])[first, np.arange(n)]
    limits = np.array([0.0, *(float(check.threshold or 0.0) for check in checks)])[first]
    names = pa.array([None, *(check.rule for check in checks)], pa.string())
    kept = first == 0
    columns = [kept, names.take(pa.array(first)), pa.array(values, mask=kept), pa.array(limits, mask=kept)]
    return pa.table(columns, schema=JUDGED)


def explain(
    whole: str,
    rules: Sequence[str] = ("gopher_quality", "gopher_repetition", "c4", "fineweb"),
    **thresholds: Mapping[str, float | None],
) -> pa.Table:
    """Every signal of one text, each with the rules on it.

    Table(signal, value, rule, bound, threshold, passed, meaning).
    A signal that no rule reads, and a rule that is off, stand there with nulls.
    """
    signals = measure([whole])
    by_signal: dict[str, list[Rule]] = {name: [] for name in MEANINGS}
    for rule in load_rules(rules, thresholds):
        by_signal[rule.signal].append(rule)
    rows: list[tuple[object, ...]] = []
    for name, meaning in MEANINGS.items():
        value = signals.column(name)[0].as_py()
        for rule in by_signal[name]:
            passed = None if rule.threshold is None else not bool(rule.failed(np.array([value]))[0])
            rows.append((name, value, rule.code, rule.bound, rule.threshold, passed, rule.because or meaning))
        if not by_signal[name]:
            rows.append((name, value, None, None, None, None, meaning))
    return pa.Table.from_pylist([dict(zip(EXPLAINED.names, row, strict=True)) for row in rows], schema=EXPLAINED)
