import jax
import pytest


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(0)
