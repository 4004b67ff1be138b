"""The same GPT in PyTorch, eager, on the CPU."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from sides import task


class KVCache:
    """Keys and values of all tokens so far: the room is taken once, views are handed out."""

    def __init__(self, config):
        shape = (2, 1, config.n_head, config.block_size, config.n_embd // config.n_head)
        self.kept, self.length = torch.empty(shape), 0

    def append(self, k, v):
        start, self.length = self.length, self.length + k.shape[2]
        self.kept[0, :, :, start : self.length] = k
        self.kept[1, :, :, start : self.length] = v
        return self.kept[:, :, :, : self.length]


class Attention(nn.Module):
    def __init__(self, config, sdpa):
        super().__init__()
        self.n_head, self.sdpa = config.n_head, sdpa
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        hidden = torch.ones(config.block_size, config.block_size, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x, cache=None):
        """Attend; with a cache, to what it holds too. Then x is a whole prompt or one token."""
        b, t, d = x.shape
        q, k, v = (
            a.view(b, t, self.n_head, d // self.n_head).transpose(1, 2)
            for a in self.c_attn(x).split(d, dim=2)
        )
        if cache is not None:
            k, v = cache.append(k, v)
        if self.sdpa:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        else:
            scores = (q @ k.transpose(-2, -1)) * (d // self.n_head) ** -0.5
            out = F.softmax(scores.masked_fill(self.hidden[:t, :t], -torch.inf), dim=-1) @ v
        return self.c_proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, config, sdpa):
        super().__init__()
        n_embd = config.n_embd
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = Attention(config, sdpa)
        self.c_fc, self.c_proj = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)

    def forward(self, x, cache=None):
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, config, sdpa):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config, sdpa) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)

    def forward(self, ids, caches=None):
        """Return the logits."""
        base = caches[0].length if caches else 0
        x = self.wte(ids) + self.wpe(torch.arange(base, base + ids.shape[1]))
        for block, cache in zip(self.blocks, caches or [None] * len(self.blocks), strict=True):
            x = block(x, cache)
        return F.linear(self.ln_f(x), self.wte.weight)


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


@torch.inference_mode()
def generate(model, ids, n):
    """Continue ids [1, T] by the n likeliest tokens, one after the other, with a cache."""
    caches = [KVCache(model.config) for _ in model.blocks]
    text, new = [ids], ids
    for _ in range(n):
        new = model(new, caches)[:, -1:].argmax(dim=-1)  # [1, 1]
        text.append(new)
    return torch.cat(text, dim=1)


def prepare(sdpa=False, fused=False):
    """Return a function that takes one step of training and returns the loss."""
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
        inputs, targets = next(batches)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), task.MAX_NORM)
        optimizer.step()
        return loss.item()

    return step
