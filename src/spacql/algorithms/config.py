"""Hyperparameters, each once: an algorithm's `Config` inherits the step of this chain that fits it.

    Training -> ActorCritic -> Conservative -> Counterfactual

Fields are flat, so that each is an option of the command line and a key of run.json. An algorithm
states only its own fields, and the defaults that differ.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

Form = Literal["log-sum-exp", "policy"]
Agents = Literal["one", "all"]


@dataclass(frozen=True)
class Training:
    """What every training has."""

    rounds: int = 2000  # a round: `updates` steps of the critics, then one of actors and targets
    updates: int = 5  # steps per round, each on a batch of its own
    batch_size: int = 1024  # transitions per batch
    hidden: tuple[int, ...] = (64, 64)  # units of the hidden layers, of all networks
    actor_learning_rate: float = 0.001  # Adam, actors
    gradient_clip: float = 0.5  # largest gradient norm of a network
    # Whether a run that is given more rounds goes on as one that had them from the start.
    may_be_lengthened: ClassVar[bool] = True


@dataclass(frozen=True)
class ActorCritic(Training):
    """What critics add."""

    critics: int = 2  # J, size of the ensemble
    learning_rate: float = 0.01  # Adam, critics
    target_rate: float = 0.01  # how far targets move towards their networks, per round
    discount: float = 0.95  # gamma


@dataclass(frozen=True)
class Conservative(ActorCritic):
    """What a critic that is pushed down outside the data adds, and its actors."""

    target_noise: float = 0.05  # deviation of the noise on target policies' actions
    action_cost: float = 0.001  # weight of the squared action in the actors' loss
    tanh_cost: float = 0.0  # the same before the tanh: it brings back an actor that saturated
    alpha: float = 0.5  # weight of the penalty, for standardised rewards
    penalty: Form = "log-sum-exp"  # over sampled actions; or at the policy's action
    penalty_every: int = 1  # the penalty looks at one transition in this many
    samples: int = 10  # uniform actions in the log-sum-exp
    policy_samples: int = 0  # actions near the policy's, at s and at s' each, in the log-sum-exp
    sample_noise: float = 0.2  # deviation of those


@dataclass(frozen=True)
class Counterfactual(Conservative):
    """What a penalty on one agent at a time adds, the others acting as logged."""

    penalty_agents: Agents = "one"  # one agent per transition, or the mean over all
