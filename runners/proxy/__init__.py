"""The gate as an OpenAI-compatible proxy in front of an engine."""
