"""The course's running example: three tokens, their projections, and the queries, keys and values.

The lessons write the same numbers out.
"""

import numpy as np

TOKENS = ("the", "river", "bank")
X = np.array([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])  # [T, D]
W_Q = np.array([[1.0, -1], [1, 0], [0, 1], [0, 1]])  # [D, d_k]
W_K = np.array([[0.0, 0], [-1, 2], [0, 1], [1, 0]])  # [D, d_k]
W_V = np.array([[0.0, -1], [0, 1], [1, 0], [0, 1]])  # [D, d_v]
Q, K, V = X @ W_Q, X @ W_K, X @ W_V  # [T, d_k], [T, d_k], [T, d_v]
