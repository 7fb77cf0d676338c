"""The sweeps behind the settings, as data: what is tried for every algorithm.

Three values of the one hyperparameter, and in most cases one beyond them where the best was the
outermost (IQL has two, and so five pairs); two seeds that no table reports. SPaCQL, PLCQL and
ICQL-QS have CFCQL's alpha. ASPAC's is one for all data; its sweeps say what its own on every
dataset would be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from spacql import records
from spacql.algorithms.config import Training
from spacql.algorithms.settings import PARTICLES, configure
from spacql.data.collect import QUALITIES
from spacql.errors import InputError
from spacql.experiments.store import Store, same_sweep, trainings, value_text
from spacql.experiments.sweeps import trial_rounds
from spacql.worlds import TASKS

SEEDS = (101, 102)
SHARE = 0.5  # of the rounds of a training
HALFCHEETAH = ("halfcheetah",)
# Where trainings break down in their second half, beside HalfCheetah: half of one says nothing.
LATE_FALLS = (("macql", "spread-random"), ("macql", "tag-random"))

LOW, MIDDLE, HIGH = (0.02, 0.1, 0.5), (0.1, 0.5, 2.5), (0.5, 2.5, 12.5)
WEAK = (0.004, 0.02, 0.1)
Values = tuple[float, ...]
# Tasks, algorithm, hyperparameter, its values on random, medium-replay, medium and expert data, and
# what is held meanwhile.
GRIDS: tuple[tuple[tuple[str, ...], str, str, tuple[Values, ...], dict[str, float]], ...] = (
    (TASKS, "cfcql", "alpha", (MIDDLE, MIDDLE, MIDDLE, HIGH), {}),
    (TASKS, "macql", "alpha", (MIDDLE, MIDDLE, LOW, MIDDLE), {}),
    (PARTICLES, "omar", "alpha", (MIDDLE,) * 4, {}),
    (HALFCHEETAH, "omar", "alpha", (MIDDLE, MIDDLE, MIDDLE, HIGH), {}),
    (TASKS, "iql", "temperature", ((1.0, 3.0, 10.0),) * 4, {"expectile": 0.7}),
    (TASKS, "iql", "expectile", ((0.7, 0.8, 0.9),) * 4, {"temperature": 3.0}),
    (TASKS, "td3bc", "q_weight", (HIGH, HIGH, MIDDLE, MIDDLE), {}),
    (PARTICLES, "dof", "eta", (HIGH, HIGH, MIDDLE, MIDDLE), {}),
    (HALFCHEETAH, "dof", "eta", (HIGH, HIGH, WEAK, WEAK), {}),
    (TASKS, "aspac", "alpha", ((0.05, 0.1, 0.3),) * 4, {}),
    # Where no other alpha is better.
    (("tag",), "aspac", "anchor_weight", ((), (), (3.4e-6, 1.1e-5, 3.4e-5, 1e-4), ()), {}),
)
# One more value where the best of three was the outermost.
BEYOND: dict[tuple[str, str], dict[float, tuple[str, ...]]] = {
    ("cfcql", "alpha"): {
        0.02: ("spread-medium-replay", "tag-medium", "tag-medium-replay", "world-medium-replay",
               "world-random"),
        0.1: ("tag-expert", "world-expert"),
    },
    ("macql", "alpha"): {
        0.02: ("spread-medium-replay", "spread-random", "tag-expert", "tag-random",
               "world-random", "halfcheetah-random"),
        12.5: ("tag-medium-replay", "world-medium-replay"),
    },
    ("omar", "alpha"): {
        0.02: ("spread-medium", "spread-random", "tag-expert", "tag-medium", "tag-medium-replay",
               "tag-random", "world-expert", "world-medium", "world-medium-replay", "world-random"),
    },
    ("td3bc", "q_weight"): {
        12.5: tuple(f"{task}-{quality}" for task in PARTICLES for quality in ("medium", "expert")),
        62.5: (*(f"{task}-{q}" for task in PARTICLES for q in ("random", "medium-replay")),
               "halfcheetah-medium-replay"),
    },
}  # fmt: skip


@dataclass(frozen=True)
class PlannedSweep:
    algorithm: str
    dataset: str
    hyperparameter: str
    values: Values
    held: Mapping[str, float]

    @property
    def name(self) -> str:
        return f"{self.dataset} {self.algorithm} {self.hyperparameter}"

    @property
    def names(self) -> tuple[str, ...]:
        """Whole words for it."""
        task, _, quality = self.dataset.partition("-")
        return self.dataset, task, quality, self.algorithm, self.hyperparameter

    @property
    def config(self) -> Training:
        return configure(self.algorithm, self.dataset, self.held)

    @property
    def share(self) -> float:
        """How long its trainings are, of the whole."""
        late = (self.algorithm, self.dataset) in LATE_FALLS
        late |= self.hyperparameter == "anchor_weight"  # ASPAC's anchor lets go late
        return 1.0 if late or self.dataset.startswith(HALFCHEETAH) else SHARE

    @property
    def rounds(self) -> int:
        """Of one training."""
        return trial_rounds(self.config.rounds, self.share)

    def left(self, store: Store) -> tuple[Values, tuple[int, ...]]:
        """The values and the seeds of the trainings that the stored sweep lacks."""
        mine = {
            "algorithm": self.algorithm,
            "data": self.dataset,
            "rounds": self.rounds,
            "config": asdict(self.config),
            "hyperparameter": self.hyperparameter,
        }
        place = store.sweep_place(mine)
        there = records.sweep(place) if place.is_file() else None
        done = trainings(there) if there and same_sweep(there, mine) else {}
        left = [(v, s) for v in self.values for s in SEEDS if (value_text(v), s) not in done]
        return tuple(sorted({v for v, _ in left})), tuple(sorted({s for _, s in left}))


def planned(only: Sequence[str] = ()) -> list[PlannedSweep]:
    """All sweeps that every word of `only` names, wholly or, if none is named so, in part."""
    found = []
    for task, (number, quality) in product(TASKS, enumerate(QUALITIES)):
        dataset = f"{task}-{quality}"
        for tasks, algorithm, hyperparameter, values, held in GRIDS:
            beyond = BEYOND.get((algorithm, hyperparameter), {}).items()
            more = tuple(value for value, datasets in beyond if dataset in datasets)
            if task in tasks and values[number]:
                tried = tuple(sorted(values[number] + more))
                found.append(PlannedSweep(algorithm, dataset, hyperparameter, tried, held))
    kept = found
    for word in only:
        wholly = [sweep for sweep in found if word in sweep.names]
        named = wholly or [sweep for sweep in found if word in sweep.name]
        kept = [sweep for sweep in kept if sweep in named]
    if not kept:
        raise InputError(
            f"--only {' '.join(only)}: there is no such sweep. Words are parts of a name such as "
            f"{found[0].name!r}; algorithms: {', '.join(dict.fromkeys(grid[1] for grid in GRIDS))}."
        )
    return kept
