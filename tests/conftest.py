"""Tests compute on one thread, as the commands do, and keep what they compile and make in one
place of the session's own."""

import os
from collections.abc import Iterator

import pytest

from spacql.threads import one_thread

os.environ.update(one_thread(os.environ))


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Equal programs are compiled once per session, in this process and in its workers."""
    import jax

    cache = tmp_path_factory.mktemp("cache")
    before = os.environ.get("SPACQL_CACHE")
    os.environ["SPACQL_CACHE"] = str(cache)
    jax.config.update("jax_compilation_cache_dir", str(cache / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    yield
    jax.config.update("jax_compilation_cache_dir", None)
    if before is None:
        del os.environ["SPACQL_CACHE"]
    else:
        os.environ["SPACQL_CACHE"] = before
