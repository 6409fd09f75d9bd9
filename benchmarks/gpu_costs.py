"""Step costs of a Qwen2.5-7B-shaped model on this machine's GPU, random weights.

`python benchmarks/gpu_costs.py [--layers 28]`: prefill time against prompt
length, decode step against batch and KV, least-squares fits of both, beside
`modelf.first_principles`. Needs a CUDA GPU of 40 GB or more, PyTorch and
transformers; exits 2 and says what is missing where it cannot run. Plain
transformers, no serving engine: attention is SDPA, decode is not captured in a
CUDA graph, so the decode step's constant is an upper bound. Its cache is copied
as it grows, which an engine's is not: that copy is timed by itself and taken off.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cli.render.table import table
from modelf.first_principles import step_costs
from modelf.hardware import GPUS, MODELS

SHAPE = MODELS["Qwen2.5-7B-Instruct"]
INTERMEDIATE, VOCABULARY = 18_944, 152_064
PREFILL_TOKENS = (512, 1024, 2048, 4096, 8192, 16_384)
DECODE = ((1, 2048), (1, 8192), (8, 2048), (8, 8192), (24, 2048), (24, 8192))
ROUNDS = 5
DEVICE = "cuda"
LIMIT_S = 240.0


def missing() -> str | None:
    """What keeps this from running, in one sentence; None if nothing does."""
    absent = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if absent:
        return f"cannot measure: {' and '.join(absent)} not installed; pip install torch transformers on a GPU machine"
    import torch

    if not torch.cuda.is_available():
        return "cannot measure: PyTorch finds no CUDA GPU here; run this on the machine that serves the model"
    return None


def build(layers: int) -> Any:
    """The model in bf16 on the GPU, weights as they were initialised."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=SHAPE.hidden,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=layers,
        num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.kv_heads,
        max_position_embeddings=32_768,
        tie_word_embeddings=False,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()


def median_s(action: Callable[[], object]) -> float:
    """Median seconds of `action` on the GPU, after one unmeasured call."""
    import torch

    times = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        action()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def prefill_s(model: Any, tokens: int) -> float:
    """Seconds to prefill one prompt and get its last logits."""
    import torch

    prompt = torch.randint(0, VOCABULARY, (1, tokens), device=DEVICE)
    with torch.inference_mode():
        return median_s(lambda: model(prompt, use_cache=True, logits_to_keep=1))


def decode_s(model: Any, batch: int, tokens: int) -> float:
    """Seconds of a decode step of `batch` sequences of `tokens` tokens of KV.

    The cache grows by a token a call: ROUNDS + 1 of thousands.
    """
    import torch
    from transformers import DynamicCache

    config, cache = model.config, DynamicCache()
    size = (batch, config.num_key_value_heads, tokens, config.hidden_size // config.num_attention_heads)
    for layer in range(config.num_hidden_layers):
        cache.update(torch.randn(size, device=DEVICE), torch.randn(size, device=DEVICE), layer)
    new = torch.randint(0, VOCABULARY, (batch, 1), device=DEVICE)
    with torch.inference_mode():
        whole_s = median_s(lambda: model(new, past_key_values=cache, use_cache=True))
    return whole_s - growth_s(size, 2 * config.num_hidden_layers)


def growth_s(size: tuple[int, int, int, int], tensors: int) -> float:
    """Seconds to grow `tensors` cached tensors of `size` by one token each."""
    import torch

    old, token = torch.randn(size, device=DEVICE), torch.randn((*size[:2], 1, size[3]), device=DEVICE)

    def grow() -> None:
        for _ in range(tensors):
            torch.cat([old, token], dim=-2)

    return median_s(grow)


def fit(columns: NDArray[np.float64], seconds: list[float]) -> list[float]:
    """Least squares of relative errors: every row counts alike."""
    scale = 1 / np.asarray(seconds)
    solution = np.linalg.lstsq(columns * scale[:, None], np.ones(len(seconds)), rcond=None)[0]
    return [float(value) for value in solution]


def measure(layers: int) -> tuple[list[float], list[float]]:
    """Fitted (request s, s/token, s/pair) and (step s, s/KV token)."""
    start, model = time.perf_counter(), build(layers)
    prefill = []
    for tokens in PREFILL_TOKENS:
        prefill.append(prefill_s(model, tokens))
        print(f"prefill {tokens:>6} tokens  {1000 * prefill[-1]:8.2f} ms", flush=True)
        if time.perf_counter() - start > LIMIT_S / 2:
            break
    decode = []
    for batch, tokens in DECODE:
        decode.append(decode_s(model, batch, tokens))
        print(f"decode  batch {batch:>2}, {batch * tokens:>7} KV tokens  {1000 * decode[-1]:8.2f} ms", flush=True)
        if time.perf_counter() - start > LIMIT_S and len(decode) > 2:
            break
    lengths = np.asarray(PREFILL_TOKENS[: len(prefill)], dtype=np.float64)
    kv_tokens = np.asarray([batch * tokens for batch, tokens in DECODE[: len(decode)]], dtype=np.float64)
    ones = np.ones_like
    return (
        fit(np.stack([ones(lengths), lengths, lengths**2 / 2], axis=1), prefill),
        fit(np.stack([ones(kv_tokens), kv_tokens], axis=1), decode),
    )


def main() -> int:
    """Measure, fit, and print both beside first principles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=SHAPE.layers, help="fewer layers than 28 to try it out")
    layers = parser.parse_args().layers
    problem = missing()
    if problem:
        print(problem, file=sys.stderr)
        return 2
    import torch

    device = torch.cuda.get_device_name()
    print(f"{device}, PyTorch {torch.__version__}, {layers} layers of Qwen2.5-7B's shape, random weights")
    fitted = [value for part in measure(layers) for value in part]
    names = ("prefill_request_s", "prefill_token_s", "prefill_pair_s", "decode_step_s", "decode_kv_token_s")
    known = {name: step_costs(SHAPE, gpu) for name, gpu in GPUS.items()}
    rows = [["cost", "fitted here", *known]]
    for name, value in zip(names, fitted, strict=True):
        rows.append([name, f"{value:.3g}", *(f"{getattr(costs, name):.3g}" for costs in known.values())])
    print(table(rows))
    if layers != SHAPE.layers:
        print(f"fitted with {layers} of {SHAPE.layers} layers: not comparable with the other columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
