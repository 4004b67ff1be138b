"""The same GPT in PyTorch, eager, on the CPU."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from training_sides import task


class Attention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, sdpa):
        super().__init__()
        self.n_head, self.sdpa = n_head, sdpa
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        hidden = torch.ones(block_size, block_size, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            a.view(b, t, self.n_head, d // self.n_head).transpose(1, 2)
            for a in self.c_attn(x).split(d, dim=2)
        )
        if self.sdpa:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (d // self.n_head) ** -0.5
            out = F.softmax(scores.masked_fill(self.hidden[:t, :t], -torch.inf), dim=-1) @ v
        return self.c_proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size, sdpa):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = Attention(n_embd, n_head, block_size, sdpa)
        self.c_fc, self.c_proj = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, config, sdpa):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        sizes = (config.n_embd, config.n_head, config.block_size, sdpa)
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def load(model, weights):
    """Give the model the course's weights: linear ones transposed, Q, K and V as one."""
    state = {}
    for name, values in weights.items():
        name = name.replace("mlp.", "")
        state[name] = values.T if ".c_" in name and name.endswith("weight") else values
    for i in range(len(model.blocks)):
        for kind in ("weight", "bias"):
            parts = [state.pop(f"blocks.{i}.attn.c_{r}.{kind}") for r in "qkv"]
            state[f"blocks.{i}.attn.c_attn.{kind}"] = np.concatenate(parts)
    model.load_state_dict({name: torch.from_numpy(v.copy()) for name, v in state.items()})


def prepare(sdpa=False, fused=False):
    """Return a function that takes one step and returns the loss."""
    torch.set_num_threads(1)
    model = GPT(task.CONFIG, sdpa)
    load(model, task.first_weights())
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if task.decays(n)], "weight_decay": task.WEIGHT_DECAY},
        {"params": [p for n, p in named if not task.decays(n)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, task.LR, task.BETAS, task.EPS, fused=fused or None)
    batches = ((torch.from_numpy(x), torch.from_numpy(y)) for x, y in task.batches())

    def step():
        loss = model(*next(batches))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), task.MAX_NORM)
        optimizer.step()
        return loss.item()

    return step
