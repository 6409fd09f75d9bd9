"""A small model of random weights that a real engine loads in seconds, without a tokenizer.

A Qwen2 of about 0.5 million parameters: replies are noise, but scheduler, block
pool and prefix cache are the engine's own. Nothing is downloaded: the weights come
from the engine's `--load-format dummy`, token ids go in and come out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCABULARY_SIZE = 1000
"""Token ids are 0 to 999."""

MAX_POSITION_TOKENS = 65_536
"""The longest context that the model's positions allow."""

HEADS = 2
HEAD_SIZE = 64
"""vLLM's CPU attention knows 32 and 64; with 16 it dies at the first request."""

KV_BYTES_PER_TOKEN = 2 * 2 * 1 * HEAD_SIZE * 4
"""Keys and values, two layers, one KV head, float32: 1 KiB."""

END_TOKEN = 2
"""Never ends a reply where requests say `ignore_eos`."""

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "vocab_size": VOCABULARY_SIZE,
    "max_position_embeddings": MAX_POSITION_TOKENS,
    "hidden_size": HEADS * HEAD_SIZE,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "initializer_range": 0.02,
    "tie_word_embeddings": True,
    "use_cache": True,
    "bos_token_id": 1,
    "eos_token_id": END_TOKEN,
    "torch_dtype": "float32",
}
"""Of the Hugging Face form that vLLM and SGLang read."""

GENERATION_CONFIG: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": END_TOKEN, "do_sample": False}


def write_random_model(folder: Path) -> None:
    """Write `config.json` and `generation_config.json` into `folder`, the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION_CONFIG)):
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
