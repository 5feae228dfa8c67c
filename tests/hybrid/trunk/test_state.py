"""Tensors of any kind as arrays, kept and filled again."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from hybrid.storage import checkpoint
from hybrid.trunk.torch import State


class Odd(torch.nn.Module):
    """Parameters and buffers that NumPy cannot show, one under two names, and a buffer that is not kept."""

    def __init__(self, seed=0):
        super().__init__()
        drawn = torch.Generator().manual_seed(seed)
        self.across = torch.nn.Parameter(torch.randn(3, 4, generator=drawn).T)
        self.short = torch.nn.Parameter(torch.randn(5, generator=drawn).bfloat16())
        self.two_bytes = torch.nn.Parameter(torch.randn(2, 2, generator=drawn).half())
        self.plain = self.tied = torch.nn.Parameter(torch.randn(2, generator=drawn))
        self.register_buffer("seen", torch.tensor(seed))
        self.register_buffer("flag", torch.tensor([seed == 0]))
        self.register_buffer("mask", torch.ones(2), persistent=False)


def stepped(seed=0, rate=0.1):
    module = Odd(seed)
    optimiser = torch.optim.AdamW(
        [{"params": [module.across, module.plain]}, {"params": [module.short], "lr": rate / 2}], rate
    )
    for _ in range(2):
        for parameter in (module.across, module.plain, module.short):
            parameter.grad = torch.ones_like(parameter)
        optimiser.step()
    return module, optimiser


def test_what_is_kept_comes_back_bit_for_bit(tmp_path):
    module, optimiser = stepped()
    state = State(module, optimiser)
    state.fetch()
    checkpoint.save(tmp_path, state.arrays(), {"state": state.facts()})
    other, fresh = Odd(1), torch.optim.AdamW
    own = fresh([{"params": [other.across, other.plain]}, {"params": [other.short], "lr": 5.0}], 7.0, betas=(0.1, 0.2))
    again = State(other, own)
    again.expect(checkpoint.read_facts(tmp_path)["state"])
    checkpoint.load_into(tmp_path, again.arrays())
    again.send()
    for name, tensor in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor) and other.state_dict()[name].dtype == tensor.dtype
    kept, found = optimiser.state_dict(), own.state_dict()
    assert found["param_groups"] == kept["param_groups"]
    for number, entries in kept["state"].items():
        for key, value in entries.items():
            assert torch.equal(found["state"][number][key], value)


def test_settings_are_facts_and_rates_that_are_tensors_stay_tensors():
    module = torch.nn.Linear(2, 2)
    optimiser = torch.optim.Adam(module.parameters(), lr=torch.tensor(0.25))
    state = State(module, optimiser)
    facts = state.facts()
    assert facts["groups"][0]["lr"] == 0.25 and facts["groups"][0]["betas"] == [0.9, 0.999] and facts["state"] == {}
    optimiser.param_groups[0]["lr"] = torch.tensor(1.0)
    state.expect(facts)
    group = optimiser.param_groups[0]
    assert torch.equal(group["lr"], torch.tensor(0.25)) and group["betas"] == (0.9, 0.999)


def test_what_no_checkpoint_can_keep_is_refused_by_name():
    class Extra(torch.nn.Linear):
        def get_extra_state(self):
            return {"a": 1}

        def set_extra_state(self, state):
            pass

    module = Extra(2, 2)
    with pytest.raises(ValueError, match="module: keeps dict _extra_state, expected tensors"):
        State(module, torch.optim.SGD(module.parameters()))
    module = torch.nn.Linear(2, 1)
    optimiser = torch.optim.LBFGS(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimiser.step(lambda: torch.tensor(1.0))
    with pytest.raises(ValueError, match="optimiser: keeps list, expected tensors and numbers"):
        State(module, optimiser).facts()
