"""Optimisers of a trunk's weights: their defaults, their options and refusals; moves are those of PyTorch."""

import numpy as np
import pytest

from hybrid import backend
from hybrid.trunk.mlp import Optimiser


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sgd", {"rate": 0.1, "momentum": 0.0, "betas": None, "decay": 0.0}),
        ("nesterov", {"rate": 0.1, "momentum": 0.9, "betas": None, "decay": 0.0}),
        ("adagrad", {"rate": 0.01, "momentum": None, "betas": None, "decay": 0.0}),
        ("adam", {"rate": 0.001, "momentum": None, "betas": [0.9, 0.999], "decay": 0.0}),
        ("adamw", {"rate": 0.001, "momentum": None, "betas": [0.9, 0.999], "decay": 0.01}),
    ],
)
def test_defaults_are_those_that_its_documentation_names(name, expected):
    assert Optimiser(name).describe() == {"optimiser": name, "clip": None} | expected


SETTINGS = {
    "SGD": {"optimiser": "sgd", "momentum": 0.0, "decay": 0.1},
    "momentum": {"optimiser": "sgd", "momentum": 0.5, "decay": 0.1},
    "Nesterov": {"optimiser": "nesterov", "momentum": 0.5, "decay": 0.1},
    "Adagrad": {"optimiser": "adagrad", "decay": 0.1},
    "Adam": {"optimiser": "adam", "betas": (0.5, 0.9), "decay": 0.1},
    "AdamW": {"optimiser": "adamw", "betas": (0.5, 0.9), "decay": 0.1},
}


@pytest.mark.parametrize(("kind", "clip"), [*zip(SETTINGS, [None, 0.5] * 3, strict=True)])
def test_weights_move_against_the_mean_gradient_as_in_pytorch(kind, clip):
    torch = pytest.importorskip("torch")
    settings = dict(SETTINGS[kind])
    own = Optimiser(settings.pop("optimiser"), rate=0.2, clip=clip, **settings)
    rng, place, examples, scale = np.random.default_rng(0), backend.choose("cpu"), 7, 0.5
    weights = rng.normal(size=40).astype(np.float32)
    theirs = torch.tensor(weights.astype(float)).requires_grad_()
    options = {"lr": 0.2 * scale, "weight_decay": settings["decay"]}
    options |= {name: settings[name] for name in ("momentum", "betas") if name in settings}
    made = {"momentum": torch.optim.SGD, "Nesterov": torch.optim.SGD}.get(kind) or getattr(torch.optim, kind)
    judge = made([theirs], **options, **({"nesterov": True} if kind == "Nesterov" else {}))
    own.begin(weights)
    own.place(place.device, place, weights.size)
    for _ in range(3):
        grad = rng.normal(size=40).astype(np.float32)
        theirs.grad = torch.tensor(grad / examples).double()
        if clip:
            torch.nn.utils.clip_grad_norm_([theirs], clip)
        judge.step()
        own.move(weights, grad, examples, scale)
        assert not grad.any()
        np.testing.assert_allclose(weights, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lion", {}, "optimiser: found 'lion', expected one of sgd, nesterov"),
        ("adam", {"momentum": 0.9}, 'momentum: found 0.9 with optimiser "adam", which has none'),
        ("sgd", {"betas": (0.9, 0.9)}, r'betas: found \(0.9, 0.9\) with optimiser "sgd", which has none'),
        ("adam", {"betas": (0.9, 1)}, r"betas: found \(0.9, 1\), expected two numbers"),
        ("adam", {"betas": (0.9,)}, "betas: found .* expected two numbers"),
        ("nesterov", {"momentum": 0}, 'momentum: found 0 with optimiser "nesterov"'),
        ("sgd", {"momentum": 1}, "momentum: found 1, expected a number below 1"),
        ("sgd", {"momentum": -0.1}, "momentum: found -0.1"),
        ("sgd", {"rate": -0.1}, "rate: found -0.1"),
        ("sgd", {"decay": np.inf}, "decay: found inf"),
        ("sgd", {"clip": 0}, "clip: found 0, expected a number above 0"),
        ("sgd", {"clip": -0.1}, "clip: found -0.1"),
    ],
)
def test_refusals(name, options, message):
    with pytest.raises(ValueError, match=message):
        Optimiser(name, **options)
