"""Fine-tuning from rows of conversations to a model that transformers loads and chats with.

OUT/examples/           ids and masks, with the account of every row (train.sft.examples)
OUT/quarantine/         refused rows: id, location, reason
OUT/before.json         held-out loss of the model as it was given
OUT/metrics.jsonl       train.pretrain.metrics; evaluation rows have held_out_loss (nats a trained token) and targets
OUT/checkpoints/        train.pretrain.checkpoints
OUT/model/              the model in the Hugging Face Llama layout, with tokenizer, chat template and end tokens
OUT/adapter/            with lora: the adapters as peft loads them
OUT/trained.json        the result, written last
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, Literal

import numpy as np

from shards.store import is_local, join, read_json, remove, write_json
from train.feed.batch import Batch
from train.model.checkpoint import load_hugging_face
from train.model.transformer import Transformer
from train.pretrain.distributed import World, whole
from train.pretrain.loop import Course, Standing, follow
from train.pretrain.metrics import Progress
from train.pretrain.rates import rate_factor
from train.pretrain.trainer import Trainer
from train.sft.adapters import put_in
from train.sft.continuation import alone, continuation_check, identity_of
from train.sft.encoding import load_chat_tokenizer
from train.sft.examples import Examples, open_examples
from train.sft.measuring import HeldOutRows, held_out_loss
from train.sft.packing import Deal, Rows, pack
from train.sft.preparing import Reading, Sources, prepare
from train.sft.refusals import SftError
from train.sft.results import FineTuned, Writer
from train.sft.settings import Sft

RESULT, BEFORE = "trained.json", "before.json"


def run(
    settings: Sft,
    *,
    model: str,
    data: str | Sequence[str],
    out: str,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    progress: IO[str] | None = None,
) -> FineTuned:
    """Fine-tune a model on rows of conversations; again on the same `out` goes on where it stopped.

    model: a Hugging Face Llama-layout folder with its tokenizer. data: JSON lines, Parquet, folders of them, or outputs
    of runs. out: a local folder. progress: where to tell of it (process 0 only). Alone or in one of torchrun's
    processes, which all return the same.
    Raises SftError, TrainingError, CheckpointError, Diverged: one line each.
    """
    if not is_local(out):
        raise SftError(f"out: {out} is no local folder; train into one, and copy it when it is done")
    world = World.join(device)
    sources = (data,) if isinstance(data, str) else tuple(data)
    try:
        with alone(out, leads=world.rank == 0):
            tuning = _FineTuning(settings, model, out, world, progress if world.rank == 0 else None)
            return tuning.run(sources)
    finally:
        world.leave()


class _FineTuning:
    def __init__(self, settings: Sft, model: str, out: str, world: World, progress: IO[str] | None) -> None:
        self.settings, self.folder, self.out, self.world, self.progress = settings, model, out, world, progress
        self.tokenizer = load_chat_tokenizer(model)
        self.reading = Reading.of(settings.chat, self.tokenizer, model)
        if settings.batch_sequences < world.size:
            raise SftError(
                f"batch_sequences: {settings.batch_sequences} are fewer than the {world.size} processes; give each at "
                "least one"
            )

    def run(self, data: tuple[str, ...]) -> FineTuned:
        model = self._loaded()  # first, since a folder that is no model should cost nobody the reading of all rows
        examples = self._prepared(data)
        rows = self._packed(examples, ~examples.held_out)
        deal, steps = self._dealt(rows.count)
        trainer = Trainer(self._model(model, examples), self.settings, world=self.world)
        held_out = HeldOutRows.of(self._packed(examples, examples.held_out), self.settings.evaluation_sequences)
        identity = identity_of(self.settings, examples.manifest["fingerprint"], self.folder)
        before = self._before(trainer, held_out, identity)

        def batches(start: int) -> Iterator[Batch]:
            for step in range(start, steps):
                numbers = deal.numbers(step, self.world.rank, self.world.size)
                yield rows.batch(numbers, step=step, first_sequence=step * deal.batch_sequences)

        course = Course(
            steps=steps,
            batches=batches,
            learning_rate=lambda step: self._learning_rate(step, steps),
            evaluate=None if held_out is None else lambda: held_out_loss(trainer, held_out),
            identity=identity,
            check=continuation_check(identity, self.out),
        )
        standing = follow(trainer, course, self.out, progress=Progress(self.progress, steps=steps))
        trained = self._result(standing, examples, rows, deal, before)
        self._write(trainer, trained, examples)
        return trained

    def _prepared(self, data: tuple[str, ...]) -> Examples:
        """Process 0 prepares, the others open what it wrote."""
        told = self.settings
        if self.world.rank == 0:
            sources = Sources(data=data, held_out=told.held_out_data, share=told.held_out, seed=told.seed)
            fingerprint = (read_json(join(self.out, "examples", "manifest.json")) or {}).get("fingerprint")
            found = prepare(sources, self.reading, self.out, most_tokens=told.sequence_tokens + 1)
            if found.manifest["fingerprint"] != fingerprint:
                remove(join(self.out, RESULT))  # what it tells is of other examples
        self.world.wait()
        found = open_examples(join(self.out, "examples"))
        rows = found.manifest["rows"]
        self._say(
            f"{rows['in']:,} rows: {rows['trained']:,} usable, {rows['refused']:,} refused, {rows['dropped']:,} dropped"
        )
        return found

    def _packed(self, examples: Examples, which: np.ndarray[Any, Any]) -> Rows:
        return pack(
            examples,
            np.flatnonzero(which).astype(np.int64),
            sequence_tokens=self.settings.sequence_tokens,
            padding_id=self.tokenizer.id_of(self.tokenizer.names.get("pad_token")) or 0,
            seed=self.settings.seed,
        )

    def _dealt(self, rows: int) -> tuple[Deal, int]:
        """The order of rows, and how many steps the run has."""
        told = self.settings
        sequences = None if told.epochs is None else told.epochs * rows
        deal = Deal(rows=rows, batch_sequences=told.batch_sequences, seed=told.seed, sequences=sequences)
        return deal, told.steps if told.steps is not None else -(-(sequences or 0) // told.batch_sequences)

    def _loaded(self) -> Transformer:
        model = load_hugging_face(self.folder)
        asked, has = self.settings.sequence_tokens, model.settings.max_positions
        if asked > has:
            raise SftError(f"sequence_tokens: {asked} are more than the {has} positions of {self.folder}; take fewer")
        return model

    def _model(self, model: Transformer, examples: Examples) -> Transformer:
        """The model for these examples' ids, with adapters where they are asked for."""
        largest, has = int(examples.tokens.max(initial=0)), model.settings.vocab_size
        if largest >= has:
            raise SftError(
                f"{self.folder}: its tokenizer gives the id {largest}, its model has {has} embeddings; take the "
                "tokenizer that the model was trained with"
            )
        return model if self.settings.lora is None else put_in(model, self.settings.lora, self.settings.seed)

    def _learning_rate(self, step: int, steps: int) -> float:
        told = self.settings
        return told.learning_rate * rate_factor(
            step,
            steps=steps,
            warmup_steps=told.warmup_steps,
            schedule=told.schedule,
            decay_share=told.decay_share,
            decay_shape=told.decay_shape,
            final_share=told.final_share,
        )

    def _before(self, trainer: Trainer, held_out: HeldOutRows | None, identity: dict[str, Any]) -> float | None:
        """The held-out loss of the model as it was given, measured once: a run that resumes has it still."""
        if held_out is None:
            return None
        asked = [identity["model"], identity["examples"], self.settings.evaluation_sequences]
        stored = read_json(join(self.out, BEFORE)) or {}
        if stored.get("asked") != asked:
            self.world.wait()  # all have looked
            stored = {"asked": asked, **held_out_loss(trainer, held_out)}
            if self.world.rank == 0:
                write_json(join(self.out, BEFORE), stored)
        loss = float(stored["held_out_loss"])
        self._say(f"held-out loss {loss:.4f} before training")
        return loss

    def _result(
        self, standing: Standing, examples: Examples, rows: Rows, deal: Deal, before: float | None
    ) -> FineTuned:
        lora, manifest = self.settings.lora, examples.manifest
        return FineTuned(
            steps=standing.step,
            epochs=self.settings.epochs or deal.epoch(standing.step),
            tokens=standing.targets,
            loss=standing.loss,
            held_out_before=before,
            held_out_after=(standing.evaluation or {}).get("held_out_loss"),
            rows=manifest["rows"],
            refused=manifest["refused"],
            example_tokens=manifest["tokens"],
            slots=rows.account(),
            rollbacks=standing.rollbacks,
            model=join(self.out, "model") if lora is None or lora.merge else None,
            adapter=None if lora is None else join(self.out, "adapter"),
        )

    def _write(self, trainer: Trainer, trained: FineTuned, examples: Examples) -> None:
        if read_json(join(self.out, RESULT)) != trained.stored():
            state = {name: whole(tensor).cpu() for name, tensor in trainer.model.state_dict().items()}
            if self.world.rank == 0:
                writer = Writer(
                    settings=self.settings,
                    tokenizer=self.tokenizer,
                    template=self.reading.template,
                    base=self.folder,
                    end_ids=tuple(examples.manifest["end_ids"]),
                )
                writer.write(trainer.model, state, self.out)
                write_json(join(self.out, RESULT), trained.stored())
        self.world.wait()
        if trained.held_out_after is not None:
            self._say(f"held-out loss {trained.held_out_after:.4f} after {trained.steps:,} steps")

    def _say(self, line: str) -> None:
        if self.progress is not None:
            self.progress.write(f"sft: {line}\n")
            self.progress.flush()
