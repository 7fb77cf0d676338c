"""One thread a process."""

import os
import subprocess
import sys

from spacql import threads
from spacql.threads import FLAG, one_thread, same_products

SUM = """
import jax, jax.numpy as jnp
x = jax.random.normal(jax.random.key(0), (64, 64, 512))
print(jax.jit(lambda x: jnp.mean(x**2, axis=(0, 1)))(x).tobytes().hex())
"""


def bits(environment):
    command = [sys.executable, "-c", SUM]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_sum_has_the_same_bits_whatever_the_number_of_cores():
    usual = {**os.environ, "XLA_FLAGS": FLAG}  # optimised, unlike the tests' own programs
    four, one = ({**usual, "NPROC": cores} for cores in ("4", "1"))
    assert bits(four) != bits(one) == bits(one_thread(four))  # the first: else it shows nothing


def test_flags_of_the_user_are_kept():
    mine = one_thread({"XLA_FLAGS": "--xla_dump_to=here", "HOME": "mine"})
    assert mine["XLA_FLAGS"] == f"--xla_dump_to=here {FLAG}"
    assert mine["HOME"] == "mine"
    chosen = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=true"}
    assert one_thread(chosen)["XLA_FLAGS"] == chosen["XLA_FLAGS"]


def test_processors_that_can_make_products_with_the_same_code_unless_the_user_chose(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(threads, "PROCESSOR", tmp_path / "cpuinfo")
    assert same_products({}) == {}, "no such file on other systems"
    threads.PROCESSOR.write_text("flags\t\t: fpu avx2 avx512f\n")
    assert same_products({}) == {}, "not all that is needed"
    threads.PROCESSOR.write_text(f"flags\t\t: fpu {' '.join(sorted(threads.NEEDED))}\n")
    assert same_products({"HOME": "mine"}) == {"HOME": "mine", "OPENBLAS_CORETYPE": "Cooperlake"}
    assert same_products({"OPENBLAS_CORETYPE": "Zen"}) == {"OPENBLAS_CORETYPE": "Zen"}
