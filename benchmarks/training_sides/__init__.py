"""The same training step, written in several ways; each file has a `prepare` that returns it."""
