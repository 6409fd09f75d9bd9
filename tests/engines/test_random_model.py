"""The folder of the small model: the same bytes, and sizes that engines accept."""

from __future__ import annotations

import json
from pathlib import Path

from runners.engines.random_model import KV_BYTES_PER_TOKEN, MAX_POSITION_TOKENS, VOCABULARY_SIZE, write_random_model


def test_the_folder_is_the_same_every_time_and_has_no_tokenizer(tmp_path: Path) -> None:
    for name in ("one", "two/deep"):
        write_random_model(tmp_path / name)
    one, two = tmp_path / "one", tmp_path / "two/deep"
    write_random_model(one)
    assert sorted(path.name for path in one.iterdir()) == ["config.json", "generation_config.json"]
    assert all((two / path.name).read_bytes() == path.read_bytes() for path in one.iterdir())


def test_the_sizes_are_those_that_a_cpu_serves(tmp_path: Path) -> None:
    write_random_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["vocab_size"], config["max_position_embeddings"]) == (VOCABULARY_SIZE, MAX_POSITION_TOKENS)
    head_size = config["hidden_size"] // config["num_attention_heads"]
    assert head_size in (32, 64)
    per_layer = 2 * config["num_key_value_heads"] * head_size * 4
    assert config["num_hidden_layers"] * per_layer == KV_BYTES_PER_TOKEN == 1024
    assert config["eos_token_id"] < VOCABULARY_SIZE
