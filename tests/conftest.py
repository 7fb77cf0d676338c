"""Tests compute on one thread, as the commands do, compile with little optimisation, and keep what
they compile and make in one place of the session's own."""

import gc
import os
from collections.abc import Iterator

import pytest

from spacql.threads import one_thread

# Compiling is most of the time of these tests, and none of them measures speed. Programs that are
# hardly optimised compile in less than half of it; the processes that tests start inherit this.
QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *QUICK]).strip()
os.environ.update(one_thread(os.environ))

# Tracing makes many objects and hardly a cycle: looking for cycles takes a sixth of the time.
gc.set_threshold(100_000, 50, 100)


def pytest_collection_finish() -> None:
    """What was imported stays, and is not looked at again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Equal programs are compiled once per session, in this process and in those it starts."""
    import jax

    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPACQL_CACHE", str(cache))
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache / "compiled"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
        jax.config.update("jax_compilation_cache_dir", str(cache / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        yield
        jax.config.update("jax_compilation_cache_dir", None)


@pytest.fixture(scope="module")
def rough_correlation() -> Iterator[None]:
    """The excess correlation after a few steps: enough to be shown."""
    from spacql.data import correlation

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "LEAST_STEPS", 5)
        patch.setattr(correlation, "EPOCHS", 0)
        yield
