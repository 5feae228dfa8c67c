"""Put a tree over the 50,257 tokens of a small GPT-2 in place of its output layer, train it, and let it continue a text.

The model is Hugging Face's, made from a configuration: nothing is downloaded. The token ids are made here: sentences that walk
in steps of their own through a vocabulary of which most tokens never occur. You see what each output layer has to learn and to
move in a step, the loss as it falls, and how many of the tokens that the tree finds likeliest are right.

    python examples/transformer_tree.py --steps 200
"""

import argparse
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hybrid.torch import TreeLoss

TOKENS, LENGTH, BATCH, USED = 50_257, 32, 16, 400


def sentences(number, rng):
    """Token ids (number, LENGTH): each sentence walks through a circle of USED tokens, one or two at a time."""
    circle = np.random.default_rng(0).permutation(TOKENS)[:USED]
    steps = rng.integers(1, 3, (number, 1)) * np.arange(LENGTH)
    return torch.from_numpy(circle[(rng.integers(0, USED, (number, 1)) + steps) % USED])


def continued(trunk, head, ids, more):
    """A text with so many more tokens, each the likeliest after those before it."""
    for _ in range(more):
        hidden = trunk(ids).last_hidden_state[:, -1]
        ids = torch.cat([ids, head.predict(hidden)[:, None]], dim=1)
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=TOKENS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2))
    trunk = model.transformer  # all but the output layer
    counts = np.bincount(sentences(500, rng).flatten(), minlength=TOKENS)
    head = TreeLoss(model.config.n_embd, counts)
    depth = np.log2(USED)
    print(
        f"output layer: {TOKENS:,} rows before; now about {depth:.0f} of the {TOKENS - 1:,} nodes of a tree for a token\n"
    )

    optimiser = torch.optim.AdamW(trunk.parameters(), lr=3e-3)
    for step in range(arguments.steps + 1):
        ids = sentences(BATCH, rng)
        hidden = trunk(ids[:, :-1]).last_hidden_state
        loss = head(hidden, ids[:, 1:]).loss  # (16, 31, 64) and (16, 31)
        optimiser.zero_grad()
        loss.backward()  # the tree moves
        optimiser.step()
        if step % max(1, arguments.steps // 5) == 0:
            print(f"step {step:>4}  loss {loss.item():.2f}")

    trunk.eval()
    whole = sentences(8, rng)
    with torch.no_grad():
        found = continued(trunk, head, whole[:, :8], 8)
        log_probs = head.best(trunk(whole[:, :8]).last_hidden_state[:, -1], k=5)[1]
    right = (found[:, 8:] == whole[:, 8:16]).float().mean()
    print(
        f"\nof 64 tokens continued {right:.0%} are right; the five most likely have {log_probs.exp().sum(1).mean():.0%}"
    )
    print("after", whole[0, 4:8].tolist(), "comes", found[0, 8:12].tolist())


if __name__ == "__main__":
    main()
