"""The command line: finds the command's function, lets tyro read its arguments, calls it.

Commands live in `spacql.commands`, one function each, whose docstring is the help. Only the
chosen one is imported, and none imports JAX before it runs.
"""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper

from spacql.errors import InputError, Interrupted, SpacqlError, suggestion
from spacql.interrupts import ended_cleanly, last_words
from spacql.threads import one_thread, same_products

# Words on the command line: module and function.
COMMANDS = {
    "demo": "spacql.commands.demo:demo",
    "data make": "spacql.commands.make:data_make",
    "data inspect": "spacql.commands.data:data_inspect",
    "data import": "spacql.commands.data:data_import",
    "data record": "spacql.commands.record:data_record",
    "data export": "spacql.commands.data:data_export",
    "data fetch": "spacql.commands.data:data_fetch",
    "data prey": "spacql.commands.data:data_prey",
    "data prey-report": "spacql.commands.make:data_prey_report",
    "data train-prey": "spacql.commands.make:data_train_prey",
    "data behaviours": "spacql.commands.make:data_behaviours",
    "data table": "spacql.commands.table:data_table",
    "data curves": "spacql.commands.table:data_curves",
    "fit": "spacql.commands.fit:fit",
    "train": "spacql.commands.train:main",
    "tune": "spacql.commands.tune:main",
    "runs": "spacql.commands.runs:runs",
    "evaluate": "spacql.commands.evaluate:evaluate",
    "roles": "spacql.commands.roles:roles",
    "export": "spacql.commands.export:export",
    "reproduce": "spacql.commands.reproduce:reproduce",
    "results add": "spacql.commands.results:results_add",
    "results list": "spacql.commands.results:results_list",
    "results sweeps": "spacql.commands.results:results_sweeps",
    "results fits": "spacql.commands.results:results_fits",
    "report": "spacql.commands.report:report",
    "theory": "spacql.commands.theory:theory",
    "bench worlds": "spacql.commands.bench:bench_worlds",
    "bench data": "spacql.commands.bench_data:bench_data",
    "bench executors": "spacql.commands.bench_executors:bench_executors",
    "bench act": "spacql.commands.bench_act:bench_act",
    "bench sampling": "spacql.commands.bench_sampling:bench_sampling",
    "bench update": "spacql.commands.bench_update:bench_update",
    "bench train": "spacql.commands.bench_train:bench_train",
}
EPILOGUE = """
Every command explains itself with --help. For example:

  spacql demo
  spacql data make spread-random --out spread-random-0
  spacql train spacql --data spread-random --seeds 0 1 2 3 4
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 well, 1 as the command says, 2 for a mistake in its use."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):  # a terminal without ± gets a question mark
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        result = _run(words)
    except SpacqlError as error:
        print(f"spacql: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stop:
        stopped = stop if isinstance(stop, Interrupted) else None
        print(f"spacql: interrupted.{last_words(stopped, words)}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output, such as head, has gone
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a disk, a permission, a name: nothing that a traceback explains
        print(f"spacql: {error.strerror or error}: {error.filename}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("spacql: there is not enough memory for this.", file=sys.stderr)
        sys.exit(2)
    sys.exit(result or 0)


def _run(words: list[str]) -> int | None:
    name = next((" ".join(words[:k]) for k in (2, 1) if " ".join(words[:k]) in COMMANDS), None)
    if name is None:
        return _help(words)
    os.environ.update(same_products(one_thread(os.environ)))
    function = _function(name)
    rest = words[len(name.split()) :]
    if "" in rest:
        raise InputError("One of the arguments is empty.")
    with ended_cleanly(words):
        return _call(function, name, rest)


def _call(function: Callable[..., int | None], name: str, arguments: list[str]) -> int | None:
    if [*inspect.signature(function).parameters] == ["args"]:  # reads its own arguments
        return function(arguments)
    import tyro

    return tyro.cli(function, prog=f"spacql {name}", args=arguments)


def _function(name: str) -> Callable[..., int | None]:
    module, function = COMMANDS[name].split(":")
    return getattr(import_module(module), function)


def _help(words: list[str]) -> int:
    """List the commands. An unknown one is a mistake; asking for help, or nothing, is not."""
    asked = [word for word in words if word not in ("-h", "--help")]
    group = [name for name in COMMANDS if asked and name.split()[0] == asked[0]]
    if asked == ["--version"]:
        from spacql import __version__

        print(__version__)
        return 0
    if asked and (not group or len(asked) > 1):
        both, pairs = " ".join(asked[:2]), [name for name in COMMANDS if " " in name]
        # The second word may be an argument of a command that has one word.
        words_given = both if group or suggestion(both, pairs) else asked[0]
        near = suggestion(both, COMMANDS) or suggestion(asked[0], COMMANDS)
        print(f"spacql: there is no command {words_given!r}.{near} "
              f"Commands: {', '.join(group or COMMANDS)}.", file=sys.stderr)  # fmt: skip
        return 2
    print("usage: spacql COMMAND [OPTIONS]\n")
    print("Offline multi-agent reinforcement learning by partial action replacement.\n")
    width = max(map(len, COMMANDS)) + 2
    for name in group or COMMANDS:
        summary = (inspect.getdoc(_function(name)) or "").splitlines()[0]
        print(f"  {name:<{width}}{summary}")
    print(EPILOGUE.rstrip())
    return 0
