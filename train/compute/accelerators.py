"""Named accelerators: peak dense bf16 FLOPs and memory of one, each from its maker.

Makers print rates with 2:4 sparsity beside or instead of dense ones; these are dense (half of the sparse figure where
only that is printed), accumulating in fp32. Memory is in the maker's units, 10^9 bytes. What a job gets is peak * MFU:
0.3 to 0.5 is usual for dense models on one NVLink node, less across slow networks and for small models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Accelerator:
    """One device. bf16_flops: dense peak a second. memory_bytes: on the device. source: of both numbers."""

    name: str
    bf16_flops: float
    memory_bytes: float
    source: str


def _of(name: str, teraflops: float, gigabytes: float, source: str) -> Accelerator:
    return Accelerator(name, teraflops * 1e12, gigabytes * 1e9, source)


ACCELERATORS: Final[dict[str, Accelerator]] = {
    device.name: device
    for device in (
        _of("a100-40gb", 312, 40, "NVIDIA A100 datasheet"),
        _of("a100", 312, 80, "NVIDIA A100 80GB datasheet (SXM; PCIe has the same peak)"),
        _of("h100", 989.4, 80, "NVIDIA H100 datasheet, SXM5: 1,979 sparse"),
        _of("h100-pcie", 756, 80, "NVIDIA H100 datasheet, PCIe: 1,513 sparse"),
        _of("h100-nvl", 835.5, 94, "NVIDIA H100 NVL datasheet: 1,671 sparse"),
        _of("h200", 989.4, 141, "NVIDIA H200 datasheet, SXM: 1,979 sparse"),
        _of("b200", 2250, 180, "NVIDIA HGX B200 datasheet: eight give 36 PFLOPS sparse and 1.44 TB"),
        _of("gb200", 2500, 186, "NVIDIA GB200 NVL72 datasheet: 72 give 360 PFLOPS sparse and 13.4 TB"),
        _of("l4", 121, 24, "NVIDIA L4 datasheet: 242 sparse"),
        _of("l40s", 362.05, 48, "NVIDIA L40S datasheet: 362.05 dense"),
        _of("rtx3090", 71, 24, "NVIDIA GA102 whitepaper, appendix A: bf16 with fp32 accumulate"),
        _of("rtx4090", 165.2, 24, "NVIDIA Ada whitepaper, appendix A: bf16 with fp32 accumulate"),
        _of("rtx5090", 209.5, 32, "NVIDIA RTX Blackwell whitepaper, appendix A: bf16 with fp32 accumulate"),
        _of("mi250x", 383, 128, "AMD Instinct MI250X data sheet (both dies of one package)"),
        _of("mi300x", 1307.4, 192, "AMD Instinct MI300X data sheet"),
        _of("mi325x", 1307.4, 256, "AMD Instinct MI325X data sheet"),
        _of("mi355x", 2516.6, 288, "AMD Instinct MI355X data sheet"),
        _of("tpu-v4", 275, 32, "Google Cloud TPU v4 documentation"),
        _of("tpu-v5e", 197, 16, "Google Cloud TPU v5e documentation"),
        _of("tpu-v5p", 459, 95, "Google Cloud TPU v5p documentation"),
        _of("tpu-v6e", 918, 32, "Google Cloud TPU v6e documentation"),
        _of("trainium2", 667, 96, "AWS Trainium2 documentation"),
        _of("gaudi3", 1835, 128, "Intel Gaudi 3 white paper"),
    )
}


def hours(flops: float, accelerator: Accelerator, accelerators: int, mfu: float) -> float:
    """Hours of wall clock at that share of the peak."""
    return flops / (accelerators * accelerator.bf16_flops * mfu) / 3600
