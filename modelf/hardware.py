"""Model shapes and GPUs as data: what first-principles costs are made of.

Origins: `printed` (model configuration or vendor's data sheet), `estimated`
(a round figure for what kernels reach of the peak; measured by nobody here).
No efficiency was fitted to a run, real or simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelf.cells import Constant


@dataclass(frozen=True)
class ModelShape:
    """A decoder-only transformer with grouped-query attention."""

    name: str
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    parameters: float
    bytes_per_parameter: int
    bytes_per_kv_element: int
    constants: tuple[Constant, ...]

    @property
    def head_dimension(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token over all layers, bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dimension * self.bytes_per_kv_element

    @property
    def weight_bytes(self) -> float:
        """All parameters, bytes."""
        return self.parameters * self.bytes_per_parameter


@dataclass(frozen=True)
class GPU:
    """One accelerator, and what an engine is estimated to get out of it.

    `peak_flops` is dense bf16, flop/s; the efficiencies are shares of
    `peak_flops` and of `bandwidth` (bytes/s). `prefill_request_s` is spent once
    a request, `decode_overhead_s` once a decode step, beside what the peaks say.
    """

    name: str
    peak_flops: float
    bandwidth: float
    memory_bytes: float
    prefill_efficiency: float
    attention_efficiency: float
    bandwidth_efficiency: float
    prefill_request_s: float
    decode_overhead_s: float
    constants: tuple[Constant, ...]


def _shape_origins(card: str) -> tuple[Constant, ...]:
    return (
        Constant("layers, heads, kv_heads, hidden", "printed", f"config.json of {card}"),
        Constant("parameters", "printed", f"model card of {card}"),
        Constant("bytes_per_parameter, bytes_per_kv_element", "printed", "bf16, weights and KV"),
    )


MODELS: dict[str, ModelShape] = {
    shape.name: shape
    for shape in (
        ModelShape("Qwen2.5-7B-Instruct", 28, 28, 4, 3584, 7.615e9, 2, 2, _shape_origins("Qwen/Qwen2.5-7B-Instruct")),
        ModelShape(
            "Llama-3.1-8B-Instruct", 32, 32, 8, 4096, 8.03e9, 2, 2, _shape_origins("meta-llama/Llama-3.1-8B-Instruct")
        ),
    )
}

_ESTIMATES = (
    Constant("prefill_efficiency", "estimated", "0.75 of peak: large bf16 matrix products at chunks of thousands"),
    Constant("attention_efficiency", "estimated", "0.55 of peak: fused causal attention, forward, long prompts"),
    Constant("bandwidth_efficiency", "estimated", "0.85 of the data sheet's bandwidth: streaming reads"),
    Constant("prefill_request_s", "estimated", "5 ms a request: scheduling, launches, sampling"),
    Constant("decode_overhead_s", "estimated", "2 ms a step: scheduling, launches, sampling"),
)


def _gpu(name: str, peak_flops: float, bandwidth: float, memory_bytes: float, sources: tuple[Constant, ...]) -> GPU:
    return GPU(name, peak_flops, bandwidth, memory_bytes, 0.75, 0.55, 0.85, 0.005, 0.002, (*sources, *_ESTIMATES))


GPUS: dict[str, GPU] = {
    gpu.name: gpu
    for gpu in (
        _gpu("A100 80GB PCIe", 312e12, 1.935e12, 80e9, (
            Constant("peak_flops", "printed", "NVIDIA A100 data sheet: 312 TFLOP/s bf16, dense"),
            Constant("bandwidth", "printed", "NVIDIA A100 data sheet, 80GB PCIe: 1,935 GB/s"),
            Constant("memory_bytes", "printed", "80 GB"),
        )),
        _gpu("H200 NVL", 835e12, 4.8e12, 141e9, (
            Constant("peak_flops", "printed", "NVIDIA H200 data sheet, NVL: 1,671 TFLOP/s bf16 with sparsity, half of "
                     "it dense (SXM: 1,979, hence 989); quoted from memory, the sheet could not be opened here"),
            Constant("bandwidth", "printed", "NVIDIA H200 data sheet: 4.8 TB/s, SXM and NVL"),
            Constant("memory_bytes", "printed", "141 GB"),
        )),
    )
}  # fmt: skip
