"""The paper's cells as data, each constant with its origin.

A cell is engine, version, model, GPU and KV pool. Only cells whose step costs
are known can be simulated; the others are run on real engines.

Three cells have no printed scale of their own. Theirs: cbar = prefill_token_s
1e4 / u and prefill_pair_s = 2 v cbar / 1e8 with the fitted shape of
`modelf.costs`; prefill_request_s = A cbar less the decode share in the all-miss
state, whose batch is 0.915 of pool / (mean prompt + output): the batch at which
sglang-300k's decode costs give its printed share of 79.7 ms.

Origins: `printed` (the paper states it), `fitted` (reconstructed from printed
figures; not the paper's own number), `estimated` (from first principles),
`measured` (on a machine of ours; the paper has no such cell).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepCosts:
    """What one engine step costs; seconds and tokens.

    A prefill of n new tokens after m cached ones costs, beyond
    `prefill_request_s` once a request,
    `prefill_token_s` n + `prefill_pair_s` (n m + n^2 / 2). A decode step
    costs `decode_step_s` + `decode_kv_token_s` times the batch's KV tokens.
    """

    prefill_request_s: float
    prefill_token_s: float
    prefill_pair_s: float
    decode_step_s: float
    decode_kv_token_s: float
    chunk_tokens: int


@dataclass(frozen=True)
class Constant:
    """Where one constant of a cell comes from."""

    name: str
    origin: str
    note: str


@dataclass(frozen=True)
class Cell:
    """One engine configuration that a registration names.

    `scheduler` of its simulation: `prefill-first` (prefill steps before decode,
    reservations in full; SGLang-like) or `mixed` (prefill chunks and decode in
    one step, memory as needed, preemption by recomputation; vLLM-like). `cache`:
    `token-lru` (a pool of tokens) or `block-lru` (of blocks of
    `cache_block_tokens`). Hits come in whole blocks with either.
    """

    name: str
    engine: str
    engine_version: str
    model: str
    gpu: str
    pool_tokens: int
    cache_block_tokens: int
    step_costs: StepCosts | None
    constants: tuple[Constant, ...]
    scheduler: str = "prefill-first"
    cache: str = "token-lru"

    @property
    def unit_tokens(self) -> int:
        """Tokens of one unit of the pool."""
        return self.cache_block_tokens if self.cache == "block-lru" else 1

    @property
    def pool_units(self) -> int:
        """Units in the pool."""
        return self.pool_tokens // self.unit_tokens


_QWEN_A100 = StepCosts(
    prefill_request_s=0.00726,
    prefill_token_s=62.3e-6,
    prefill_pair_s=2.28e-9,
    decode_step_s=0.0117,
    decode_kv_token_s=33.7e-9,
    chunk_tokens=8192,
)

_QWEN_A100_ORIGINS = (
    Constant("prefill_request_s", "fitted", "7.26 ms: the fit's constant less the printed decode share of 79.7 ms"),
    Constant("prefill_token_s", "fitted", "62.3 us a token, to reproduce the paper's printed model-F figures"),
    Constant("prefill_pair_s", "fitted", "2.28 ns a causal pair, to reproduce the paper's printed model-F figures"),
    Constant("decode_step_s", "estimated", "7.6e9 bf16 weights over the A100's memory bandwidth, with overhead"),
    Constant("decode_kv_token_s", "estimated", "57,344 KV bytes a token (Qwen2.5-7B, bf16) over memory bandwidth"),
    Constant("chunk_tokens", "estimated", "the chunk size pinned for this cell; the paper lost its figure"),
)

_CHUNK = Constant("chunk_tokens", "estimated", "as in the Qwen cells on the A100; the paper lost its figure")

_QWEN_A100_VLLM = StepCosts(
    prefill_request_s=0.00961,
    prefill_token_s=62.3e-6,
    prefill_pair_s=2.588e-9,
    decode_step_s=0.0117,
    decode_kv_token_s=33.7e-9,
    chunk_tokens=2048,
)

_QWEN_A100_VLLM_ORIGINS = (
    Constant("prefill_request_s", "fitted", "this cell's A times cbar, 89.3 ms, less the decode share of 79.7 ms"),
    Constant("prefill_token_s", "estimated", "as sglang-300k, the same model and GPU; sets cbar = 0.966 s with u"),
    Constant("prefill_pair_s", "fitted", "2 v cbar / 1e8 of this cell's fitted shape"),
    Constant("decode_step_s", "estimated", "as sglang-300k: the same weights, GPU and pool"),
    Constant("decode_kv_token_s", "estimated", "as sglang-300k: the same model and GPU"),
    Constant("chunk_tokens", "estimated", "vLLM's default token budget of a server's step on an A100"),
)

_LLAMA_A100 = StepCosts(
    prefill_request_s=0.01186,
    prefill_token_s=65.7e-6,
    prefill_pair_s=2.972e-9,
    decode_step_s=0.01219,
    decode_kv_token_s=77.0e-9,
    chunk_tokens=8192,
)

_LLAMA_A100_ORIGINS = (
    Constant("prefill_request_s", "fitted", "this cell's A times cbar, 138.5 ms, less its decode share of 126.7 ms"),
    Constant("prefill_token_s", "estimated", "sglang-300k's times 8.03e9 / 7.615e9 parameters; cbar = 1.084 s with u"),
    Constant(
        "prefill_pair_s", "fitted", "2 v cbar / 1e8; over prefill_token_s 1.24 times that of Qwen, as the flops are"
    ),
    Constant("decode_step_s", "estimated", "16.06e9 bytes at sglang-300k's effective 1.70 TB/s, and its 2.75 ms more"),
    Constant("decode_kv_token_s", "estimated", "131,072 KV bytes a token (bf16) at the same 1.70 TB/s"),
    _CHUNK,
)

_QWEN_H200 = StepCosts(
    prefill_request_s=0.00121,
    prefill_token_s=23.75e-6,
    prefill_pair_s=0.7823e-9,
    decode_step_s=0.00361,
    decode_kv_token_s=13.59e-9,
    chunk_tokens=8192,
)

_QWEN_H200_ORIGINS = (
    Constant("prefill_request_s", "fitted", "this cell's A times cbar, 22.2 ms, less its decode share of 21.0 ms"),
    Constant("prefill_token_s", "fitted", "u cbar / 1e4; cbar is the A100's over the printed 2.71, at 600k 0.339 s"),
    Constant("prefill_pair_s", "fitted", "2 v cbar / 1e8 of this cell's fitted shape"),
    Constant("decode_step_s", "estimated", "15.23e9 bytes at 0.88 of 4.8 TB/s; A leaves no room for an overhead"),
    Constant("decode_kv_token_s", "estimated", "57,344 KV bytes a token at the same 0.88 of 4.8 TB/s"),
    _CHUNK,
)

_MINI_CPU = StepCosts(
    prefill_request_s=0.0028,
    prefill_token_s=13.7e-6,
    prefill_pair_s=30.2e-9,
    decode_step_s=0.0035,
    decode_kv_token_s=204.0e-9,
    chunk_tokens=2048,
)

_MINI_CPU_ORIGINS = tuple(
    Constant(name, "measured", "benchmarks/step_costs.py on 2 AVX2 cores, float32, eager")
    for name in (
        "prefill_request_s",
        "prefill_token_s",
        "prefill_pair_s",
        "decode_step_s",
        "decode_kv_token_s",
        "chunk_tokens",
    )
)


def _pool(origin: str, note: str) -> Constant:
    return Constant("pool_tokens", origin, note)


CELLS: dict[str, Cell] = {
    cell.name: cell
    for cell in (
        Cell(
            "sglang-300k", "sglang", "0.5.22", "Qwen2.5-7B-Instruct", "A100 80GB PCIe", 300_000, 1,
            _QWEN_A100, (_pool("printed", "KV pool capped at 300k tokens"), *_QWEN_A100_ORIGINS),
        ),
        Cell(
            "sglang-native", "sglang", "0.5.22", "Qwen2.5-7B-Instruct", "A100 80GB PCIe", 955_757, 1,
            _QWEN_A100, (_pool("printed", "SGLang's own pool"), *_QWEN_A100_ORIGINS),
        ),
        Cell(
            "vllm-300k", "vllm", "0.32.0", "Qwen2.5-7B-Instruct", "A100 80GB PCIe", 300_000, 16,
            _QWEN_A100_VLLM, (_pool("printed", "KV pool capped at 300k tokens"), *_QWEN_A100_VLLM_ORIGINS),
            "mixed", "block-lru",
        ),
        Cell(
            "h200-600k", "sglang", "0.5.22", "Qwen2.5-7B-Instruct", "H200 NVL", 600_000, 1,
            _QWEN_H200, (_pool("printed", "KV pool capped at 600k tokens"), *_QWEN_H200_ORIGINS),
        ),
        Cell(
            "llama-300k", "sglang", "0.5.22", "Llama-3.1-8B-Instruct", "A100 80GB PCIe", 300_000, 1,
            _LLAMA_A100, (_pool("printed", "KV pool capped at 300k tokens"), *_LLAMA_A100_ORIGINS),
        ),
        Cell(
            "vllm-cpu-mini", "vllm", "0.32.0", "random Qwen2, 2 layers of 128", "2 CPU cores (AVX2)", 30_016, 32,
            _MINI_CPU, (_pool("measured", "938 blocks of 32 tokens, as the engine says"), *_MINI_CPU_ORIGINS),
            "mixed", "block-lru",
        ),
    )
}  # fmt: skip
