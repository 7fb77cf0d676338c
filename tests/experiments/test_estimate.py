"""What a run is expected to take, where none of its kind has ended yet."""

from spacql.experiments.estimate import rough_seconds


def cost(*hidden: int) -> float:
    """Seconds of a training beyond one whose networks cost nothing."""
    return rough_seconds({"hidden": hidden}) - rough_seconds({"hidden": (1,)})


def test_a_layer_more_costs_what_the_layer_before_it_did() -> None:
    assert abs(cost(128, 128, 128) / cost(128, 128) - 2) < 1e-9
