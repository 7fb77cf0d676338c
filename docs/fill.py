"""Fill the tables in README and docs from the stored results, by the commands that stand there.

    python docs/fill.py            writes them
    python docs/fill.py --check    only says which are out of date, and fails then

A table stands between two comments, of which the first holds the command:

    <!-- spacql reproduce table2 --only spread -->
    <!-- end -->
"""

import re
import shlex
import sys
from pathlib import Path

from spacql.experiments import sweeps, tables
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- spacql (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(command: str, store: Store) -> str:
    """The Markdown that `spacql reproduce NAME --stored` writes, without its title; or the tables
    of `spacql results sweeps`."""
    group, name, *words = shlex.split(command)
    if (group, name) == ("results", "sweeps"):
        return sweeps.markdown(sweeps.stored(store, words))
    if group != "reproduce":
        raise SystemExit(f"There is no table to make with: spacql {command}")
    only = words[1:] if words[:1] == ["--only"] else []
    if words and not only:
        raise SystemExit(f"Only --only can stand in a comment: {command}")
    return tables.markdown(make_plan(name, only=only), store).partition("\n\n")[2]


def filled(text: str, store: Store) -> str:
    return BLOCK.sub(lambda m: f"{m[1]}\n{table(m[2], store)}\n{m[3]}", text)


def main(check: bool) -> int:
    store, stale = Store(ROOT / "results"), []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        old = page.read_text()
        new = filled(old, store)
        if new != old:
            stale.append(page.name)
            if not check:
                page.write_text(new)
    if stale:
        print("out of date:" if check else "filled:", ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
