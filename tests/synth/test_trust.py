"""What a run says of its verifiers: planted answers, golds that the answers speak against, and no end by a bad row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from synth.errors import SynthError
from synth.items import Item, Outcome, Sample, SampleKind
from synth.store import Store
from synth.trust import lines, trust
from synth.verdicts import Check, Verdict
from synth.verifiers import verify


def check_all(checks: Sequence[Check]) -> list[Verdict]:
    return [verify(one.kind, one.gold, one.answer, **one.options) for one in checks]


def stored(folder: Path, items: dict[str, tuple[Item, list[tuple[str, str]]]]) -> Store:
    """A store with one concluded task: each item with its answers and their verdicts."""
    store = Store.open(folder)
    task = store.items.task("solve", "distill", b"one")
    for item, answers in items.values():
        store.items.see(task, item, b"content", None, 1)
        samples = [
            Sample(
                item=item.id, number=at, kind=SampleKind.CONVERSATION, keys=(), verdict=verdict,
                outcome=Outcome.ACCEPTED if verdict == "right" else Outcome.REJECTED, reason="verify.wrong",
                messages=({"role": "user", "content": "?"}, {"role": "assistant", "content": answer}),
            )
            for at, (answer, verdict) in enumerate(answers)
        ]  # fmt: skip
        told = {"outcome": Outcome.ACCEPTED, "reason": "", "concluded": b"one", "verifiers": "{}", "again": False}
        store.items.conclude(task, item.id, samples, **told)
    store.items.read_to_end(task, 1)
    store.commit()
    return store


def item(name: str, gold: str, **options: str) -> Item:
    return Item(id=name, prompt="?", gold=gold, verifier="math", options=options)


def test_verifiers_are_measured_and_a_gold_that_answers_agree_against_is_doubted(tmp_path: Path) -> None:
    right = [("The answer is 7.", "right")] * 16
    rows = {str(n): (item(str(n), "7"), right) for n in range(120)}
    rows["bad"] = (item("bad", "9"), [("The answer is 11.", "wrong")] * 16)
    with stored(tmp_path, rows) as store:
        found = trust(store, check_all)
    [math] = found["planted"]
    assert (math["false_positive"]["count"], math["false_negative"]["count"]) == (0, 0)
    assert math["false_positive"]["total"] == math["false_negative"]["total"] == 121
    assert [one["item"] for one in found["gold_errors"]] == ["bad"]
    assert found["judged_items"] == 121
    told = list(lines(found))
    assert "of planted answers 0.0% [0.0%, " in told[0]
    assert "solve/bad" in told[1]


def test_options_that_a_verifier_does_not_take_are_that_items_errors(tmp_path: Path) -> None:
    rows = {"a": (item("a", "7"), [("7", "right")] * 2), "b": (item("b", "8", colour="red"), [("8", "right")] * 2)}
    with stored(tmp_path, rows) as store:
        found = trust(store, check_all)
    [math] = found["planted"]
    assert (math["errors"], math["false_positive"]["total"]) == (2, 1)


def test_a_store_without_golds_tells_nothing(tmp_path: Path) -> None:
    with stored(tmp_path, {}) as store:
        assert trust(store, check_all) == {"planted": [], "gold_errors": [], "judged_items": 0}
    assert list(lines({"planted": [], "gold_errors": [], "judged_items": 0})) == []


def test_the_check_itself_refuses_such_options() -> None:
    refused = False
    try:
        check_all([Check(kind="math", gold="8", answer="8", options={"colour": "red"})])
    except SynthError:
        refused = True
    assert refused
