"""The same GPT, written in several ways; each file's `prepare` returns a step of its training."""
