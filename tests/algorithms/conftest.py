from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def compile_fast() -> Iterator[None]:
    """Compiling is most of the time of these tests, and none of them measures speed."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()  # other tests compare bits with optimised programs


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(0)
