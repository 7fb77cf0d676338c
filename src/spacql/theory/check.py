"""What every statement returns: its two sides."""

from typing import NamedTuple

# Occupancies and values come from linear solves in double precision; their error is far below this.
TOLERANCE = 1e-9


class Check(NamedTuple):
    """One statement `left <= right` on one instance.

    An equality is stated as a distance `left` that must not exceed `right = 0`.
    `trivial` is a bound on `left` that is known without the statement (a total variation is at
    most one); where `right >= trivial` the statement is true but says nothing.
    """

    left: float
    right: float
    trivial: float = float("inf")

    @property
    def slack(self) -> float:
        return self.right - self.left

    @property
    def holds(self) -> bool:
        return self.left <= self.right + TOLERANCE * (1.0 + abs(self.right))

    @property
    def vacuous(self) -> bool:
        return self.right >= self.trivial
