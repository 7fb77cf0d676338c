import jax
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from spacql.errors import InputError
from spacql.policies import uniform
from spacql.worlds import make, rollout
from spacql.worlds.render import AGENTS, PREY, frame, save_gif, save_png, states_of

KEY = jax.random.key(0)


def has_color(picture, color, tolerance=40):
    wanted = np.array(to_rgb(color)) * 255
    return (np.abs(picture.astype(int) - wanted).max(axis=-1) < tolerance).sum()


def plot_area(picture):
    return picture[40:470]  # without the legend below


@pytest.mark.parametrize("prey", [None, "flee"])
def test_predators_prey_forests_food_and_obstacle_are_all_to_be_seen(prey):
    world = make("world", prey=prey)
    picture = plot_area(frame(world, world.reset(KEY)))
    for color in (*AGENTS[:3], PREY, "#777777", "#B7DDB0", "#F0E442"):
        assert has_color(picture, color) > 20, color


def test_a_picture_moves_with_its_agents_and_grows_trails():
    world = make("spread")
    start = world.reset(KEY)
    later, _ = jax.jit(world.step)(start, np.ones((3, 2), np.float32))
    for _ in range(5):
        later, _ = jax.jit(world.step)(later, np.ones((3, 2), np.float32))
    still, moved = frame(world, start), frame(world, later)
    trailed = frame(world, [start, later])
    assert still.shape == moved.shape == trailed.shape
    assert (plot_area(still) != plot_area(moved)).any()
    assert (plot_area(trailed) != plot_area(moved)).any()


def test_states_are_found_again_in_the_observations():
    for world in (make("spread"), make("tag", prey="flee"), make("world", prey=None)):
        state = world.reset(KEY)
        (found,) = states_of(world, [np.asarray(o)[None] for o in world.observe(state)])
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, state)


def test_an_episode_becomes_a_gif_and_its_end_a_png(tmp_path):
    world = make("tag", prey="flee")
    policy = uniform(world.spec)
    save_gif(world, policy, KEY, tmp_path / "episode.gif")
    with Image.open(tmp_path / "episode.gif") as picture:
        assert picture.n_frames == 26
        assert picture.info["loop"] == 0
        picture.seek(25)
        last = np.asarray(picture.convert("RGB"))
    (episode,) = rollout(world, policy, KEY, 1, trajectories=True)
    states = states_of(world, [o[0] for o in episode.observations])
    save_png(world, states, tmp_path / "end.png", episode.returns[0])
    with Image.open(tmp_path / "end.png") as picture:
        np.testing.assert_allclose(np.asarray(picture).astype(int), last, atol=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["end.png", "episode.gif"]


def test_a_picture_that_cannot_be_written_is_refused_with_a_sentence(tmp_path):
    world = make("spread")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        save_png(world, world.reset(KEY), tmp_path / "file" / "x.png")


def test_worlds_outside_jax_are_refused():
    class Other:
        spec = make("spread").spec

    with pytest.raises(InputError, match="Only the particle worlds can be drawn"):
        states_of(Other(), [])
