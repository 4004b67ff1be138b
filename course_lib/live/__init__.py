"""Live figures: a matplotlib picture that answers its controls, and one module per explorer.

An explorer module has three layers, each of which can be tested alone:

- ``compute(**values)`` calls what the lesson teaches, and returns a frozen dataclass of arrays;
- ``draw(state, theme)`` returns a `Picture`, and ``says(state)`` one sentence about it;
- ``explore()`` gives them their controls, and returns an `Explorer` to be shown.
"""
