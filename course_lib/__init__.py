"""The small library of the course: autograd, attention, a tiny GPT, figures and checkers."""
