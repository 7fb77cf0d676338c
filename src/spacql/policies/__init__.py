"""What acts: a policy is one actor per agent (a prey, a behaviour, a trained team)."""

from spacql.policies.actors import MLP as MLP
from spacql.policies.actors import Flee as Flee
from spacql.policies.actors import Uniform as Uniform
from spacql.policies.actors import from_unit as from_unit
from spacql.policies.actors import init_mlp as init_mlp
from spacql.policies.diffusion import Diffusion as Diffusion
from spacql.policies.policy import Policy as Policy
from spacql.policies.policy import uniform as uniform
