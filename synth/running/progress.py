"""How far a run is, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Progress:
    """items: concluded by this run, and skipped as they were already. accepted: samples. tokens_per_second: of replies,
    over the run so far. truncated_share: of replies. cost: of this run. stopped: why nothing further is asked."""

    seconds: float
    items: int
    skipped: int
    accepted: int
    samples: int
    sent: int
    replied: int
    failed: int
    tokens_per_second: float
    truncated_share: float
    cost: float
    stopped: str = ""

    def line(self) -> str:
        """One line for people."""
        told = [
            f"{self.seconds:.0f} s", f"{self.items} items (+{self.skipped} skipped)",
            f"{self.accepted} of {self.samples} samples accepted",
            f"{self.sent - self.replied - self.failed} in flight",
            f"{self.tokens_per_second:.0f} tokens/s", f"{self.truncated_share:.1%} cut",
        ]  # fmt: skip
        told += [f"{self.failed} failed"] if self.failed else []
        told += [f"cost {self.cost:.2f}"] if self.cost else []
        told += [f"stopped: {self.stopped}"] if self.stopped else []
        return ", ".join(told)

    def plain(self) -> dict[str, Any]:
        return asdict(self)
