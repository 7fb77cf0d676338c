"""What is known of the published tasks and is not written in their files."""

from typing import NamedTuple


class Task(NamedTuple):
    name: str
    agents: tuple[str, ...]
    horizon: int  # every episode ends by this time limit; the task itself never does
    random: float  # published reference returns
    expert: float


_PREDATORS = ("predator_0", "predator_1", "predator_2")
_SPREAD = Task("spread", ("agent_0", "agent_1", "agent_2"), 25, 159.8, 516.8)
_TAG = Task("tag", _PREDATORS, 25, -4.1, 185.6)
_WORLD = Task("world", _PREDATORS, 25, -6.8, 79.5)
_CHEETAH = Task("halfcheetah", ("agent_0", "agent_1"), 1000, -284.0, 3568.8)

# By the names of folders and vaults.
TASKS = {
    "simple_spread": _SPREAD,
    "simple_tag": _TAG,
    "simple_world": _WORLD,
    "HalfCheetah-v2": _CHEETAH,
    "2halfcheetah": _CHEETAH,
}


def reference(task: Task) -> dict[str, float | str]:
    return {"random": task.random, "expert": task.expert, "source": "published"}
