"""A budget as plain text: aligned columns, no terminal library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from train.compute.laws import LAWS
from train.compute.numbers import duration, power, short

if TYPE_CHECKING:
    from train.compute.budgets import Budget


def table_of(made: Budget) -> str:
    question = made.question
    head = f"law {question.law}: {LAWS[question.law].source}"
    on = f"{question.accelerators} x {question.accelerator} at {question.mfu:.0%} of the dense bf16 peak"
    parts = [f"{head}\n{on}", _plans(made)]
    parts += [text for text in (_flops(made), _domains(made), _variants(made), _devices(made)) if text]
    rule = made.rule
    parts.append(
        f"second opinion, DeepSeek's rule for {power(made.chosen.train_flops)} FLOPs: {short(rule.tokens)} tokens, "
        f"peak learning rate {rule.learning_rate:.2e}, batch {short(rule.batch_tokens)} tokens"
    )
    if made.notes:
        parts.append("\n".join(f"note: {note}" for note in made.notes))
    return "\n\n".join(parts) + "\n"


def _plans(made: Budget) -> str:
    inference, repeated = made.question.inference_tokens > 0, made.chosen.epochs is not None
    header = ["plan", "parameters", "tokens", "tokens/parameter", "loss", "train FLOPs", "at equal loss"]
    header += ["lifetime FLOPs"] * inference + ["epochs", "worth tokens"] * repeated + ["time"]
    rows = []
    for plan in made.plans:
        row = [plan.name, short(plan.parameters), short(plan.tokens), f"{plan.tokens_per_parameter:.3g}"]
        ratio = "-" if plan.flops_ratio is None else f"x {plan.flops_ratio:.2f}"
        row += [f"{plan.loss:.4f}", power(plan.train_flops), ratio]
        row += [power(plan.lifetime_flops)] * inference
        if repeated:
            row += ["-" if plan.epochs is None else f"{plan.epochs:.3g}", short(plan.effective_tokens)]
        rows.append([*row, duration(plan.hours)])
    return aligned(header, rows)


def _flops(made: Budget) -> str:
    counted = made.token_flops
    if counted is None or made.shape is None:
        return ""
    header = ["FLOPs a token", "layers", "head", "attention", "training", "inference", "attention/layers", "6 N"]
    row = [f"context {counted.mean_context:.0f}", *map(power, (counted.layers, counted.head, counted.attention))]
    row += [power(counted.train), power(counted.inference), f"{counted.attention_share:.1%}"]
    return aligned(header, [[*row, power(6.0 * made.shape.parameters)]])


def _domains(made: Budget) -> str:
    header = ["domain", "unique tokens", "weight", "tokens", "epochs", "worth tokens", "worth each"]
    rows = [
        [
            row.domain,
            short(row.unique_tokens),
            f"{row.weight:.4f}",
            short(row.tokens),
            f"{row.epochs:.3g}",
            short(row.effective_tokens),
            f"{row.value:.1%}",
        ]
        for row in made.domains
    ]
    return aligned(header, rows) if rows else ""


def _variants(made: Budget) -> str:
    header = [
        "instead",
        "bytes/token",
        "parameters",
        "tokens",
        "FLOPs/token",
        "attention/layers",
        "train FLOPs",
        "time",
    ]
    rows = [
        [
            row.name,
            "-" if row.bytes_per_token is None else f"{row.bytes_per_token:.3g}",
            short(row.parameters),
            short(row.tokens),
            power(row.flops_per_token),
            "-" if row.attention_share is None else f"{row.attention_share:.1%}",
            power(row.train_flops),
            duration(row.hours),
        ]
        for row in made.variants
    ]
    return aligned(header, rows) if rows else ""


def _devices(made: Budget) -> str:
    header = [f"{made.question.accelerators} of", "dense bf16 TFLOPS", "time", "memory", "state on each"]
    rows = [
        [
            row.accelerator,
            f"{row.bf16_flops / 1e12:.4g}",
            duration(row.hours),
            f"{row.memory_bytes / 1e9:.0f} GB",
            f"{row.state_bytes / 1e9:.3g} GB{'' if row.fits else ' (too much)'}",
        ]
        for row in made.devices
    ]
    return aligned(header, rows)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """First column to the left, the others to the right."""
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
