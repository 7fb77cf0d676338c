"""Where agents act: the particle worlds, HalfCheetah, any PettingZoo world; and rollouts."""

from spacql.worlds.particle import State as State
from spacql.worlds.rollout import Trajectories as Trajectories
from spacql.worlds.rollout import episode_chunks as episode_chunks
from spacql.worlds.rollout import rollout as rollout
from spacql.worlds.world import TASKS as TASKS
from spacql.worlds.world import HostState as HostState
from spacql.worlds.world import World as World
from spacql.worlds.world import is_jax as is_jax
from spacql.worlds.world import is_known as is_known
from spacql.worlds.world import is_slow as is_slow
from spacql.worlds.world import make as make
