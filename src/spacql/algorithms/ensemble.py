"""An ensemble of critics Q_j(s, a), and how its work is cut to fit the machine.

The first layer is linear in (s, a), so it is kept as one part for the state and one for every
agent. Replacing one agent's action then costs a product with d rows instead of a whole layer.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

ROWS = 192  # rows of a matrix product at a time, so that activations stay in the nearest caches
FORWARD_ROWS = 1024  # the same where nothing is kept for a backward pass


class Critic(eqx.Module):
    """A ReLU network from the state and all agents' actions to one number.

    Actions are padded to the largest agent's size d; the padding is zero everywhere, so its
    weights never matter. An ensemble is one `Critic` whose arrays have a leading axis J.
    """

    state_weight: Array  # (S, H)
    action_weight: Array  # (n, d, H)
    weights: tuple[Array, ...]  # (H, H') between hidden layers
    biases: tuple[Array, ...]  # (H,) of every hidden layer
    last_weight: Array  # (H,)
    last_bias: Array  # ()
    # Whether hidden layers are standardised before their ReLU, which bounds what the network says
    # of inputs unlike any that it has seen.
    layer_norm: bool = eqx.field(static=True, default=False)


def init_critics(
    key: Array,
    critics: int,
    state_size: int,
    n: int,
    action_size: int,
    hidden: Sequence[int],
    layer_norm: bool = False,
) -> Critic:
    """J fresh critics, weights and biases uniform within one over the root of the inputs.

    The last layer begins a tenth as large: a fresh critic that is confident about actions leads
    the actors astray before it has seen any data.
    """
    inputs = (state_size + n * action_size, *hidden)
    shapes = [((state_size, hidden[0]), inputs[0]), ((n, action_size, hidden[0]), inputs[0])]
    shapes += [((i, o), i) for i, o in pairwise(hidden)]
    shapes += [((o,), i) for i, o in pairwise(inputs)]
    shapes += [((hidden[-1],), hidden[-1]), ((), hidden[-1])]
    state, action, *rest = uniform_arrays(key, [((critics, *s), i) for s, i in shapes])
    layers = len(hidden) - 1
    between, biases = tuple(rest[:layers]), tuple(rest[layers:-2])
    return Critic(state, action, between, biases, 0.1 * rest[-2], 0.1 * rest[-1], layer_norm)


def uniform_arrays(key: Array, shapes: Sequence[tuple[tuple[int, ...], int]]) -> list[Array]:
    """Arrays uniform within one over the root of their number of inputs; (shape, inputs) each.

    All come from one draw: every call of a random generator takes half a second to compile.
    """
    sizes = [prod(shape) for shape, _ in shapes]
    draw = jax.random.uniform(key, (sum(sizes),), minval=-1, maxval=1)
    ends = accumulate(sizes)
    return [
        draw[end - size : end].reshape(shape) * inputs**-0.5
        for (shape, inputs), size, end in zip(shapes, sizes, ends, strict=True)
    ]


def first_layer(critic: Critic, s: Array, a: Array) -> Array:
    """The first layer's sum at (s, a), before its ReLU: s (B, S), a (B, n, d) to (B, H)."""
    n, d, h = critic.action_weight.shape
    actions = a.reshape(len(a), n * d) @ critic.action_weight.reshape(n * d, h)
    return s @ critic.state_weight + critic.biases[0] + actions


def later_layers(critic: Critic, z: Array) -> Array:
    """From the first layer's sums (rows, H) to Q-values (rows,)."""
    norm = standardised if critic.layer_norm else lambda z: z
    h = jax.nn.relu(norm(z))
    for weight, bias in zip(critic.weights, critic.biases[1:], strict=True):
        h = jax.nn.relu(norm(h @ weight + bias))
    return h @ critic.last_weight + critic.last_bias


def standardised(z: Array) -> Array:
    """Mean 0 and deviation 1 over the units of a layer."""
    centred = z - jnp.mean(z, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def q_of_agent(critic: Critic, z: Array, a: Array, i: Array | int, x: Array) -> Array:
    """Q(s, x, a_-i): agent i does x, the others act as in a.

    z (B, H) is the first layer at (s, a), a (B, n, d), x (B, M, d); returns (B, M). With a as
    (B, 1, n d) the whole team counts as one agent.
    """
    batch, choices, size = x.shape
    weight = critic.action_weight.reshape(a.shape[1], size, -1)[i]  # (d, H)
    others = z - a[:, i] @ weight
    z_x = others[:, None] + (x.reshape(-1, size) @ weight).reshape(batch, choices, -1)
    return later_layers(critic, z_x.reshape(batch * choices, -1)).reshape(batch, choices)


def q_of_joint(critic: Critic, s: Array, a: Array) -> Array:
    """Q(s, a) for M joint actions per state: s (B, S), a (B, M, n, d); returns (B, M)."""
    batch, choices, n, size = a.shape
    weight = critic.action_weight.reshape(n * size, critic.action_weight.shape[-1])
    state = s @ critic.state_weight + critic.biases[0]
    z = state[:, None] + (a.reshape(batch * choices, n * size) @ weight).reshape(batch, choices, -1)
    return later_layers(critic, z.reshape(batch * choices, -1)).reshape(batch, choices)


def ensemble_q(critics: Critic, s: Array, a: Array) -> Array:
    """All critics at M joint actions per state: s (B, S), a (B, M, n, d); returns (J, B, M)."""
    groups = in_groups((s, a), group_size(len(s), a.shape[1], most=len(s), rows=FORWARD_ROWS))

    def of_critic(critic: Critic) -> Array:
        return each(lambda group: q_of_joint(critic, *group), groups).reshape(a.shape[:2])

    return each(of_critic, critics)


def ensemble_gradient(
    loss: Callable[[Critic, Array, Any], Any], critics: Critic, s: Array, a: Array, groups: Any
) -> Any:
    """The gradient of every critic's mean loss, and the mean metrics, both with axis J.

    `loss(critic, z, group)` returns the mean over one group of transitions and a pytree of
    metrics; z is the first layer at the group's (s, a), which is computed for all at once.
    `groups` has the number of groups G as leading axis.
    """
    count = jax.tree.leaves(groups)[0].shape[0]
    gradient_of = jax.grad(loss, argnums=(0, 1), has_aux=True)

    def of_critic(critic: Critic) -> Any:
        z, pull_back = jax.vjp(lambda critic: first_layer(critic, s, a), critic)
        z = in_groups(z, len(s) // count)
        if loops():
            # Adding up as we go, instead of keeping one gradient per group, stays in the cache.
            def step(total: Any, group: Any) -> Any:
                (of_weights, of_z), metrics = gradient_of(critic, *group)
                return jax.tree.map(jnp.add, total, (of_weights, metrics)), of_z

            (_, _), metrics = jax.eval_shape(gradient_of, critic, z[0], _first(groups))
            zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (critic, metrics))
            (total, metrics), of_z = jax.lax.scan(step, zero, (z, groups))
        else:
            (total, of_z), metrics = jax.vmap(gradient_of, in_axes=(None, 0, 0))(critic, z, groups)
            total, metrics = jax.tree.map(lambda x: x.sum(axis=0), (total, metrics))
        (through_z,) = pull_back(of_z.reshape(len(s), -1))
        gradient = jax.tree.map(jnp.add, total, through_z)
        return jax.tree.map(lambda x: x / count, (gradient, metrics))

    return each(of_critic, critics)


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda x: x[0], tree)


def loops() -> bool:
    """Whether to loop over critics and groups (CPU) or to map over them at once (accelerator).

    On a CPU, small plain matrix products whose inputs are still in the cache are fastest; an
    accelerator wants everything in one large batched product.
    """
    return bool(jax.default_backend() == "cpu")


def each(function: Callable[[Any], Any], xs: Any) -> Any:
    """`function` over the leading axis of `xs`: one after the other, or all at once."""
    return jax.lax.map(function, xs) if loops() else jax.vmap(function)(xs)


def group_size(batch: int, choices: int, most: int, rows: int = ROWS) -> int:
    """Transitions per group: the largest divisor of the batch, at most `most`, for `rows` rows."""
    limit = min(max(1, rows // choices), most)
    return max(size for size in range(1, limit + 1) if batch % size == 0)


def in_groups(data: Any, size: int) -> Any:
    """Arrays (B, ...) as (B / size, size, ...)."""
    return jax.tree.map(lambda x: x.reshape(len(x) // size, size, *x.shape[1:]), data)
