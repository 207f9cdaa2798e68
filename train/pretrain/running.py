"""Pretraining from token shards to a model that other libraries load.

OUT/plan.json           the plan's state, the token folders, the settings: what `audit` reads beside OUT/ledger
OUT/ledger/             what each process was really given, step by step
OUT/metrics.jsonl       train.pretrain.metrics
OUT/checkpoints/        train.pretrain.checkpoints
OUT/model/              the trained model in the Hugging Face Llama layout, with its tokenizer
OUT/loss.svg            train.pretrain.plot
OUT/trained.json        the result, written last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, Literal

from shards.store import filesystem, is_local, join, read_json, remove, write_json
from train.compute.flops import ModelShape, TokenFlops
from train.feed.batch import Batch
from train.feed.ledger import Ledger
from train.feed.loader import Loader
from train.feed.plan import Plan
from train.feed.run_record import write_run_record
from train.feed.token_shards import TokenShards
from train.model.checkpoint import save_hugging_face
from train.model.transformer import Transformer
from train.pretrain.continuation import continuation_check, identity_of
from train.pretrain.distributed import World, whole
from train.pretrain.evaluation import evaluate
from train.pretrain.exclusion import alone
from train.pretrain.held_out import HeldOut
from train.pretrain.loop import Course, Standing, follow
from train.pretrain.metrics import Progress
from train.pretrain.plot import plot_losses
from train.pretrain.rates import rate_factor
from train.pretrain.settings import Pretrain
from train.pretrain.state import TrainingError
from train.pretrain.token_bytes import token_bytes
from train.pretrain.trainer import Trainer
from train.tokenise.tokenizer import load_tokenizer

RESULT = "trained.json"
LARGE_SHARE = 0.05  # held out beyond what was asked for: worth a line


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The result of a run. steps: updates and skipped ones. tokens: targets trained on. parameters: of the model.

    loss: nats a target of the last step. bits_per_byte, nats_per_token: on all held-out text, None where there is none;
    by_domain, by_language: {name: {bits_per_byte, nats_per_token, targets, bytes}}. rollbacks: what the guard did.
    model: folder of the model.
    """

    steps: int
    tokens: int
    parameters: int
    loss: float | None
    bits_per_byte: float | None
    nats_per_token: float | None
    by_domain: dict[str, dict[str, Any]]
    by_language: dict[str, dict[str, Any]]
    rollbacks: list[dict[str, Any]]
    model: str


def run(
    settings: Pretrain,
    *,
    tokens: str | Sequence[str],
    out: str,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    progress: IO[str] | None = None,
) -> Trained:
    """Pretrain on token shards; again on the same `out` goes on where it stopped.

    tokens: folders of token shards, or of the runs that made them. out: a local folder. progress: where to tell of it
    (process 0 only). Alone or in one of torchrun's processes, which all return the same.
    Raises TrainingError, PlanError, TokenShardsError, CheckpointError, Diverged: one line each.
    """
    if not is_local(out):
        raise TrainingError(f"out: {out} is no local folder; train into one, and copy it when it is done")
    world = World.join(device)
    try:
        with alone(out, world):
            return _Pretraining(settings, tokens, out, world, progress if world.rank == 0 else None).run()
    finally:
        world.leave()


def plan_of(settings: Pretrain, shards: TokenShards) -> Plan:
    """The plan that settings describe, with a segment a change."""
    plan = Plan.new(
        shards,
        weights=settings.weights,
        sequence_tokens=settings.sequence_tokens,
        batch_sequences=settings.batch_sequences,
        seed=settings.seed,
        packing=settings.packing,
        overflow=settings.overflow,
        max_epochs=settings.max_epochs,
        held_out=settings.held_out,
        block_tokens=settings.tokens_a_block,
    )
    for change in settings.changes:
        if change.of_plan:
            plan = plan.change(change.at_step, **change.of_plan)
    return plan


class _Pretraining:
    def __init__(
        self, settings: Pretrain, tokens: str | Sequence[str], out: str, world: World, progress: IO[str] | None
    ) -> None:
        self.settings, self.out, self.world, self.progress = settings, out, world, progress
        self.shards = TokenShards.open(tokens)
        taken = [tokens] if isinstance(tokens, str) else list(tokens)
        if filesystem(out)[1] in {filesystem(folder)[1] for folder in (*taken, *self.shards.folders)}:
            raise TrainingError(f"out: {out} is where the tokens come from; train into a folder of its own")
        self.plan = plan_of(settings, self.shards)
        self.steps = settings.total_steps
        self._check()

    def _check(self) -> None:
        if self.plan.steps is not None and self.plan.steps < self.steps:
            raise TrainingError(
                f"steps: {self.steps} are more than the {self.plan.steps} that max_epochs leaves; raise max_epochs, or "
                "train for fewer"
            )
        rows = [self.settings.batch_sequences, *(one.batch_sequences or 1 << 62 for one in self.settings.changes)]
        if min(rows) < self.world.size:
            raise TrainingError(
                f"batch_sequences: {min(rows)} are fewer than the {self.world.size} processes; give each at least one"
            )

    def run(self) -> Trained:
        model = Transformer(self.settings.model(self.shards.vocab_size), seed=self.settings.seed)
        parameters = sum(one.numel() for one in model.parameters())
        trainer = Trainer(model, self.settings, world=self.world, domains=len(self.plan.domains))
        tokenizer = join(self.shards.folders[0], "tokenizer.json")
        standing = follow(
            trainer,
            self._course(trainer, tokenizer),
            self.out,
            progress=Progress(self.progress, steps=self.steps),
        )
        return self._finish(trainer, standing, tokenizer, parameters)

    def _course(self, trainer: Trainer, tokenizer: str) -> Course:
        held_out = HeldOut.of(
            self.shards,
            share=self.settings.held_out,
            sequence_tokens=self.settings.sequence_tokens,
            max_rows=self.settings.evaluation_sequences,
        )
        bytes_of_token = token_bytes(load_tokenizer(tokenizer))
        shape = ModelShape(**self.settings.model(self.shards.vocab_size).shape._asdict())
        for line in self._not_measured(held_out):
            self._say(line)
        return Course(
            steps=self.steps,
            batches=self._batches,
            learning_rate=self._learning_rate,
            domains=tuple(domain.name for domain in self.shards.domains),
            evaluate=(lambda: evaluate(trainer, held_out, bytes_of_token).row()) if held_out.batch.rows else None,
            anew=frozenset(change.at_step for change in self.settings.changes),
            identity=identity_of(self.settings, self.shards),
            check=continuation_check(self.settings, self.shards, self.out),
            ledger=self._ledger,
            flops_per_target=TokenFlops.of(shape, self.settings.sequence_tokens).train,
            peak_flops=self.settings.peak_flops,
        )

    def _not_measured(self, held_out: HeldOut) -> Iterator[str]:
        """A line for each domain of which nothing is measured, or far more held out than was asked for."""
        if not self.settings.held_out:
            return
        measured = {group.domain for group in held_out.groups}
        for domain in self.shards.domains:
            share = 1 - self.plan.tokens[domain.name] / domain.tokens
            if domain.name not in measured:
                what = "has one document only" if not share else "has nothing to predict in what is held out"
                yield f"nothing of {domain.name} is measured: it {what}"
            elif share > self.settings.held_out + LARGE_SHARE:
                yield f"{share:.0%} of {domain.name} are held out: its last document is that long"

    def _say(self, line: str) -> None:
        Progress(self.progress, steps=self.steps).say(line)

    def _batches(self, start: int) -> Iterable[Batch]:
        return Loader(
            self.plan,
            self.shards,
            start_step=start,
            stop_step=self.steps,
            rank=self.world.rank,
            world_size=self.world.size,
            workers=self.settings.workers,
            isolate=self.settings.isolate,
        )

    def _learning_rate(self, step: int) -> float:
        told = self.settings
        return told.learning_rate_at(step) * rate_factor(
            step,
            steps=told.steps_at(step),
            warmup_steps=told.warmup_steps,
            schedule=told.schedule,
            decay_share=told.decay_share,
            decay_shape=told.decay_shape,
            final_share=told.final_share,
        )

    def _ledger(self, start: int) -> Ledger:
        """Begin an attempt: from here on OUT holds no finished run."""
        if self.world.rank == 0:
            remove(join(self.out, RESULT))
            plan, settings = self.plan.state(), self.settings.plain()
            write_run_record(self.out, plan=plan, tokens=self.shards.folders, settings=settings)
        return Ledger.open(
            join(self.out, "ledger"),
            rank=self.world.rank,
            world_size=self.world.size,
            plan=self.plan,
            start_step=start,
            isolate=self.settings.isolate,
        )

    def _finish(self, trainer: Trainer, standing: Standing, tokenizer: str, parameters: int) -> Trained:
        told = standing.evaluation or {}
        trained = Trained(
            steps=standing.step,
            tokens=standing.targets,
            parameters=parameters,
            loss=standing.loss,
            bits_per_byte=told.get("bits_per_byte"),
            nats_per_token=told.get("nats_per_token"),
            by_domain=told.get("by_domain", {}),
            by_language=told.get("by_language", {}),
            rollbacks=standing.rollbacks,
            model=join(self.out, "model"),
        )
        stored = {**asdict(trained), "model": "model", "model_dtype": self.settings.model_dtype}
        if read_json(join(self.out, RESULT)) != stored:
            state = {name: whole(tensor).cpu() for name, tensor in trainer.model.state_dict().items()}
            if self.world.rank == 0:
                self._write(trainer, state, tokenizer)
                write_json(join(self.out, RESULT), stored)
        self.world.wait()
        return trained

    def _write(self, trainer: Trainer, state: dict[str, Any], tokenizer: str) -> None:
        save_hugging_face(
            trainer.model,
            join(self.out, "model"),
            tokenizer,
            dtype=self.settings.model_dtype,
            state=state,
            bos_id=self.shards.bos_id,
            eos_id=self.shards.eos_id,
        )
        plot_losses(self.out)
