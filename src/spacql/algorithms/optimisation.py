"""Steps of networks: Adam after clipping, and target networks that follow."""

from typing import Any

import jax
import optax

from spacql.algorithms.config import Training


def optimiser(config: Training, rate: float) -> optax.GradientTransformation:
    """Adam after clipping; used for each network by itself."""
    return optax.chain(optax.clip_by_global_norm(config.gradient_clip), optax.adam(rate))


def step_each(
    networks: Any, gradients: Any, optimiser_state: Any, config: Training, rate: float
) -> tuple[Any, Any]:
    """One optimiser step for each network of a tuple by itself."""
    update = optimiser(config, rate).update
    steps = [update(g, state) for g, state in zip(gradients, optimiser_state, strict=True)]
    moved = tuple(
        optax.apply_updates(network, step)
        for network, (step, _) in zip(networks, steps, strict=True)
    )
    return moved, tuple(state for _, state in steps)


def polyak_update(target: Any, online: Any, rate: float) -> Any:
    """Target networks move towards the online ones."""
    return jax.tree.map(lambda old, new: old + rate * (new - old), target, online)
