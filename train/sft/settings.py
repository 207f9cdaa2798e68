"""Settings of supervised fine-tuning: how rows become ids and masks, and how a model is trained on them."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from train.pretrain.optimisation import FREE_TO_CHANGE, Beta, Count, Optimisation
from train.pretrain.rates import Schedule

Target = Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
OWN = frozenset({"messages", "tools", "documents", "add_generation_prompt"})  # what each rendering fills in itself
Argument = str | bool | int | float | None


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Chat:
    """How conversations become token ids and a mask of what is trained.

    template: None takes the model folder's own (chat_template.jinja or tokenizer_config.json); else the path of a
        Jinja file or the name of one shipped here (chatml, llama3, qwen2.5, qwen3, gemma, mistral).
    template_arguments: further names the template reads (enable_thinking, say); the same must be given at inference.
    template_date: the day (YYYY-MM-DD) for templates that write today's; None leaves them without a clock, so that
        they fall back to their fixed date or refuse.
    text_rows: what `prompt` and `completion` strings are: chat, a user's and an assistant's message; text, plain text
        without a template, the tokenizer's EOS behind the completion.
    history: rows whose earlier answers the template rewrites as the conversation goes on: refuse, or split into an
        example an answer, each as inference sees it.
    trimmed_answers: answers whose outer white space the template strips: refuse, or train what it leaves.
    control_text: contents that spell a control token: text encodes them as ordinary characters; refuse.
    empty_answers: answers of no text and no tool call: refuse, or train their end token alone.
    bos: template, what the template emits is all; prepend puts the tokenizer's BOS before it.
    truncate: conversations over sequence_tokens + 1 tokens: right cuts ids and mask together, drop leaves them out,
        both counted; refuse.
    max_refused: share of rows that may be refused before the whole run is.
    """

    template: str | None = None
    template_arguments: dict[str, Argument] = Field(default_factory=dict)
    template_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    text_rows: Literal["chat", "text"] = "chat"
    history: Literal["refuse", "split"] = "refuse"
    trimmed_answers: Literal["refuse", "train"] = "refuse"
    control_text: Literal["text", "refuse"] = "text"
    empty_answers: Literal["refuse", "train"] = "refuse"
    bos: Literal["template", "prepend"] = "template"
    truncate: Literal["refuse", "right", "drop"] = "refuse"
    max_refused: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _renderable(self) -> Chat:
        if taken := sorted(OWN & set(self.template_arguments)):
            raise ValueError(f"template_arguments: {taken[0]} is filled in by each row; leave it out")
        if self.template_date is not None:
            try:
                date.fromisoformat(self.template_date)
            except ValueError:
                raise ValueError(
                    f"template_date: {self.template_date} is no day of the calendar; write YYYY-MM-DD"
                ) from None
        return self


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Lora:
    """Low-rank adapters instead of all weights (Hu et al. 2021, arXiv:2106.09685), by peft.

    rank: of each update; alpha: the update counts alpha / rank times. dropout: of its input. targets: names of the
        linear maps that get one; all seven of a layer, as Dettmers et al. 2023 (arXiv:2305.14314, section 4) found to
        be needed to match full fine-tuning.
    merge: write OUT/model with the adapters added to the weights, too; OUT/adapter is always written.
    """

    rank: Count = 16
    alpha: float = Field(default=32.0, gt=0, allow_inf_nan=False)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: Annotated[tuple[Target, ...], Field(min_length=1)] = get_args(Target)
    merge: bool = True


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Sft(Optimisation):
    """Fine-tune a model on conversations; the settings of the loop itself are Optimisation's, with other defaults.

    chat: how rows become ids and masks. lora: None trains all weights.
    held_out_data: files of rows to measure on, never trained on. held_out: share of the other rows, by hash(seed, id),
        that are held out as well.
    sequence_tokens: targets a row; conversations are packed whole into rows of one more token, none attending to
        another. batch_sequences: rows a step, over all processes.
    epochs, steps: the length of the run, exactly one of them. Each epoch has every row once; the last step of the
        last epoch is filled up with empty rows.
    evaluation_sequences: packed rows of held-out conversations at most; None takes all.
    learning_rate: 2e-5 suits all weights of a model of billions; small models and LoRA take 10 times as much.
    model_dtype: of the weights in OUT/model; training keeps float32 whatever it is.
    """

    chat: Chat = Field(default_factory=Chat)
    lora: Lora | None = None
    held_out_data: tuple[str, ...] = ()
    held_out: float = Field(default=0.05, ge=0, lt=1)
    sequence_tokens: int = Field(default=2048, ge=2)
    batch_sequences: Count = 16
    epochs: Count | None = None
    steps: Count | None = None
    evaluation_sequences: Count | None = 256
    model_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    learning_rate: float = Field(default=2e-5, gt=0, allow_inf_nan=False)
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    schedule: Schedule = "cosine"
    warmup_steps: int = Field(default=10, ge=0)
    checkpoint_every_steps: Count | None = 200
    evaluate_every_steps: Count | None = 100

    @model_validator(mode="after")
    def _whole(self) -> Sft:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("epochs, steps: give exactly one of them, as the length of the run")
        if self.lora is not None and self.optimizer == "muon":
            raise ValueError("optimizer: muon is for whole matrices, not for the factors of lora; take adamw")
        return self

    def plain(self) -> dict[str, Any]:
        """As JSON values, the way a settings file says them."""
        told: dict[str, Any] = TypeAdapter(Sft).dump_python(self, mode="json")
        return told


FREE = FREE_TO_CHANGE | {"evaluation_sequences", "model_dtype"}
