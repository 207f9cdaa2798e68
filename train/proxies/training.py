"""One proxy in one process: what all runs of a process share is made once, and a run leaves one small result.

OUT/runs/NAME/metrics.jsonl    train.pretrain.metrics, each step
OUT/runs/NAME/checkpoints/     while it runs: a run that was killed goes on from the newest
OUT/runs/NAME/result.json      what was measured, written last; or
OUT/runs/NAME/failed.json      why it was not
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import torch

from shards.store import filesystem, join, remove, sweep, write_json
from train.compute.flops import TokenFlops
from train.feed.batch import Batch
from train.feed.loader import Loader
from train.feed.plan import Plan
from train.feed.token_shards import TokenShards
from train.model.checkpoint import save_hugging_face
from train.model.transformer import Transformer
from train.pretrain.distributed import World
from train.pretrain.evaluation import evaluate
from train.pretrain.held_out import HeldOut
from train.pretrain.loop import Course, Standing, follow
from train.pretrain.metrics import read_metrics
from train.pretrain.rates import rate_factor
from train.pretrain.settings import Pretrain
from train.pretrain.token_bytes import token_bytes
from train.pretrain.trainer import Trainer, TrainingError
from train.proxies.observing import RESULT, RUNS
from train.proxies.part import part_of
from train.proxies.planning import ProxyRun, shape_of
from train.proxies.settings import Proxies, pretrain_settings
from train.tokenise.tokenizer import load_tokenizer

FORMAT: Final = 1
SAMPLED_STEPS: Final = 32  # whose rows are measured for the FLOPs of attention


class ProxyTrainer:
    """Trains the runs of one swarm in this process, one after another.

    device: of all of them. Opening shards, laying out held-out text and counting bytes of tokens is done here, once.
    """

    def __init__(self, settings: Proxies, tokens: Sequence[str], out: str, device: torch.device) -> None:
        self.settings, self.out, self.world = settings, out, World(device=device)
        self.shards = TokenShards.open(list(tokens))
        self.held_out = HeldOut.of(
            self.shards,
            share=settings.held_out,
            sequence_tokens=settings.sequence_tokens,
            max_rows=settings.evaluation_sequences,
        )
        self.tokenizer = join(self.shards.folders[0], "tokenizer.json")
        self.bytes_of_token = token_bytes(load_tokenizer(self.tokenizer))

    def train(self, run: ProxyRun) -> dict[str, Any]:
        """The result of a run, which is stored; a run that was begun goes on. Raises what training raises."""
        folder = join(self.out, RUNS, run.name)
        os.makedirs(filesystem(folder)[1], exist_ok=True)
        sweep(folder)
        settings = pretrain_settings(self.settings, run.size, run.weights, seed=run.seed, steps=run.steps)
        part = part_of(self.shards, {name: count for name, count in run.unique_tokens.items() if run.weights[name] > 0})
        plan = self.plan(settings, part)
        trainer = Trainer(
            Transformer(settings.model(self.shards.vocab_size), seed=run.seed),
            settings,
            world=self.world,
            domains=len(part.domains),
        )
        standing = follow(trainer, self.course(trainer, settings, plan, part, run), folder)
        result = self.result(run, standing, plan, folder)
        if self.settings.keep_models:
            save_hugging_face(
                trainer.model,
                join(folder, "model"),
                self.tokenizer,
                bos_id=self.shards.bos_id,
                eos_id=self.shards.eos_id,
            )
        write_json(join(folder, RESULT), result)
        remove(join(folder, "checkpoints"))
        return result

    def plan(self, settings: Pretrain, part: TokenShards) -> Plan:
        plan = Plan.new(
            part,
            weights={domain.name: (settings.weights or {})[domain.name] for domain in part.domains},
            sequence_tokens=settings.sequence_tokens,
            batch_sequences=settings.batch_sequences,
            seed=settings.seed,
            packing=settings.packing,
            overflow=settings.overflow,
            max_epochs=settings.max_epochs,
            held_out=0.0,  # what is held out lies behind the part
        )
        if plan.steps is not None and settings.steps is not None and plan.steps < settings.steps:
            asked = settings.steps
            raise TrainingError(f"max_epochs: leaves {plan.steps} of {asked} steps; raise it, or train fewer tokens")
        return plan

    def course(self, trainer: Trainer, settings: Pretrain, plan: Plan, part: TokenShards, run: ProxyRun) -> Course:
        steps = settings.total_steps
        identity = {"run": run.to_json(), "tokens": part.digest}

        def batches(start: int) -> Iterable[Batch]:
            return Loader(plan, part, start_step=start, stop_step=steps, isolate=settings.isolate)

        def learning_rate(step: int) -> float:
            return settings.learning_rate * rate_factor(
                step,
                steps=steps,
                warmup_steps=settings.warmup_steps,
                schedule=settings.schedule,
                decay_share=settings.decay_share,
                decay_shape=settings.decay_shape,
                final_share=settings.final_share,
            )

        def check(stored: dict[str, Any], step: int) -> None:
            if stored != identity:
                raise TrainingError(f"{run.name}: its checkpoint of step {step} is of another run; remove its folder")

        return Course(
            steps=steps,
            batches=batches,
            learning_rate=learning_rate,
            domains=tuple(domain.name for domain in part.domains),
            evaluate=lambda: evaluate(trainer, self.held_out, self.bytes_of_token).row(),
            identity=identity,
            check=check,
        )

    def result(self, run: ProxyRun, standing: Standing, plan: Plan, folder: str) -> dict[str, Any]:
        shape = shape_of(self.settings, run.size, self.shards.vocab_size)
        context = mean_square_length(plan, run.steps) if self.settings.isolate else float(self.settings.sequence_tokens)
        return {
            "format": FORMAT,
            "run": run.to_json(),
            "parameters": shape.parameters,
            "tokens": standing.targets,
            "flops": standing.targets * TokenFlops.of(shape, context).train,
            "tokens_by_domain": trained_tokens(folder, run.weights),
            "metrics": metrics_of(standing),
        }


def metrics_of(standing: Standing) -> dict[str, float | None]:
    """Measures by name: bits_per_byte and loss (nats a token) of all held-out text, of each domain and language."""
    told = standing.evaluation or {}
    found = {"bits_per_byte": told.get("bits_per_byte"), "loss": told.get("nats_per_token")}
    for prefix, scores in (("", told.get("by_domain", {})), ("language/", told.get("by_language", {}))):
        for name, score in sorted(scores.items()):
            found[f"bits_per_byte/{prefix}{name}"] = score["bits_per_byte"]
            found[f"loss/{prefix}{name}"] = score["nats_per_token"]
    return {**found, "train_loss": standing.loss}


def trained_tokens(folder: str, domains: Iterable[str]) -> dict[str, int]:
    """Targets of each domain that were trained on."""
    found = dict.fromkeys(domains, 0)
    for row in read_metrics(folder):
        if row["kind"] == "step":
            for name, count in row["targets_by_domain"].items():
                found[name] += count
    return found


def mean_square_length(plan: Plan, steps: int) -> float:
    """sum(l^2) / sum(l) over the pieces of documents in rows, of steps spread evenly over the run."""
    sampled = np.unique(np.linspace(0, steps - 1, min(steps, SAMPLED_STEPS)).astype(np.int64))
    lengths = np.concatenate([plan.batch(int(step)).count for step in sampled]).astype(np.float64)
    return float((lengths**2).sum() / lengths.sum())


def told_of(error: BaseException) -> str:
    """An error in one line, the kind in front where its text does not say enough."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    ours = isinstance(error, ValueError | RuntimeError) and type(error).__module__.startswith("train.")
    return first if ours else f"{type(error).__name__}: {first}"
