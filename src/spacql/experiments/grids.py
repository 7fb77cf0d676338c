"""The sweeps behind the settings, as data: what is tried for every algorithm.

Three values of every hyperparameter (IQL has two), two seeds that no table reports, half the length
of a training. SPaCQL, PLCQL and ICQL-QS have CFCQL's alpha. ASPAC's is one for all data; its sweeps
say what its own on every dataset would be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from spacql import records
from spacql.algorithms.config import Training
from spacql.algorithms.settings import configure
from spacql.data.collect import QUALITIES
from spacql.errors import InputError
from spacql.experiments.store import Store, same_sweep, trainings, value_text
from spacql.experiments.sweeps import trial_rounds
from spacql.worlds import TASKS

SEEDS = (101, 102)
SHARE = 0.5  # of the rounds of a training

LOW, MIDDLE, HIGH = (0.02, 0.1, 0.5), (0.1, 0.5, 2.5), (0.5, 2.5, 12.5)
# Algorithm, hyperparameter, its values on random, medium-replay, medium and expert data, and what
# is held meanwhile.
GRIDS: tuple[tuple[str, str, tuple[tuple[float, ...], ...], dict[str, float]], ...] = (
    ("cfcql", "alpha", (MIDDLE, MIDDLE, MIDDLE, HIGH), {}),
    ("macql", "alpha", (MIDDLE, LOW, LOW, MIDDLE), {}),
    ("omar", "coefficient", ((0.3, 0.7, 1.0),) * 4, {}),
    ("iql", "temperature", ((1.0, 3.0, 10.0),) * 4, {"expectile": 0.7}),
    ("iql", "expectile", ((0.7, 0.8, 0.9),) * 4, {"temperature": 3.0}),
    ("td3bc", "q_weight", (HIGH, HIGH, MIDDLE, MIDDLE), {}),
    ("dof", "eta", ((0.05, 0.5, 5.0),) * 4, {}),
    ("aspac", "alpha", ((0.05, 0.1, 0.3),) * 4, {}),
)


@dataclass(frozen=True)
class PlannedSweep:
    algorithm: str
    dataset: str
    hyperparameter: str
    values: tuple[float, ...]
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
    def rounds(self) -> int:
        """Of one training."""
        return trial_rounds(self.config.rounds, SHARE)

    def seeds_left(self, store: Store) -> tuple[int, ...]:
        """The seeds that the stored sweep lacks for one value or more."""
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
        texts = [value_text(value) for value in self.values]
        return tuple(seed for seed in SEEDS if not all((text, seed) in done for text in texts))


def planned(only: Sequence[str] = ()) -> list[PlannedSweep]:
    """All sweeps that every word of `only` names, wholly or, if none is named so, in part."""
    found = [
        PlannedSweep(algorithm, f"{task}-{quality}", hyperparameter, by_quality[number], held)
        for task in TASKS
        for number, quality in enumerate(QUALITIES)
        for algorithm, hyperparameter, by_quality, held in GRIDS
    ]
    kept = found
    for word in only:
        wholly = [sweep for sweep in found if word in sweep.names]
        named = wholly or [sweep for sweep in found if word in sweep.name]
        kept = [sweep for sweep in kept if sweep in named]
    if not kept:
        raise InputError(
            f"--only {' '.join(only)}: there is no such sweep. Words are parts of a name such as "
            f"{found[0].name!r}; algorithms: {', '.join(dict(g[:2] for g in GRIDS))}."
        )
    return kept
