"""Fill README and docs from the stored results, by the commands that stand there.

    python docs/fill.py            writes texts, tables and figures
    python docs/fill.py --check    only says which are out of date, and fails then

What is filled in stands between two comments, of which the first holds the command:

    <!-- spacql reproduce table2 --only spread -->
    <!-- end -->

A figure (`spacql reproduce scores`) is drawn into docs/figures when its numbers have changed.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from spacql.commands.reproduce import PICTURES
from spacql.errors import InputError
from spacql.experiments import claims, figures, overall, sweeps, tables
from spacql.experiments.paper import make_plan
from spacql.experiments.store import Store
from spacql.fitting import selection, truth

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
BLOCK = re.compile(r"(<!-- spacql (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def picture(name: str, store: Store) -> dict[str, Any] | None:
    """A figure's numbers, or None where no run of it is finished."""
    try:
        return figures.draw(make_plan(name), store, None)
    except InputError:
        return None


def made(command: str, store: Store, figures_at: str) -> str:
    """The Markdown that a command makes: a table without its title, a figure and its caption,
    verdicts, or the tables of `spacql results sweeps`."""
    group, name, *words = shlex.split(command)
    if (group, name) == ("results", "sweeps"):
        return sweeps.markdown(sweeps.stored(store, words))
    if (group, name) == ("results", "fits"):
        return truth.markdown(truth.stored(store.results))
    if group != "reproduce":
        raise SystemExit(f"There is no table to make with: spacql {command}")
    if name == "selection":
        pools = selection.stored(store.results)
        return selection.markdown({key: selection.statistics(p) for key, p in pools.items()})
    if name == "claims":  # README is short
        return claims.brief(store) if figures_at.startswith("docs") else claims.markdown(store)
    if name in PICTURES:
        drawn, place = picture(name, store), f"{figures_at}/{name}.svg"
        if drawn is None:
            return "<small>No run of this figure is finished.</small>\n"
        title = make_plan(name).title
        return f"[![{title}]({place})]({place})\n\n<small>{drawn['caption']}</small>\n"
    only = words[1:] if words[:1] == ["--only"] else []
    if words and not only:
        raise SystemExit(f"Only --only can stand in a comment: {command}")
    plan = make_plan(name, only=only)
    return tables.markdown(plan, store).partition("\n\n")[2] + overall.markdown(plan, store)


def filled(text: str, store: Store, figures_at: str = "figures") -> str:
    return BLOCK.sub(lambda m: f"{m[1]}\n{made(m[2], store, figures_at)}\n{m[3]}", text)


def old_figures(texts: list[str], store: Store) -> list[str]:
    """Those of the texts' figures whose file does not hold today's numbers."""
    names = {m[2].split()[1] for text in texts for m in BLOCK.finditer(text)} & set(PICTURES)
    old = []
    for name in sorted(names):
        path, drawn = FIGURES / f"{name}.svg", picture(name, store)
        if drawn is None:
            continue
        today = figures.identifier(drawn)
        if not path.is_file() or today not in path.read_text():
            old.append(name)
    return old


def main(check: bool) -> int:
    store, stale = Store(ROOT / "results"), []
    texts = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        old = page.read_text()
        new = filled(old, store, "docs/figures" if page.parent == ROOT else "figures")
        texts.append(new)
        if new != old:
            stale.append(page.name)
            if not check:
                page.write_text(new)
    for name in old_figures(texts, store):
        stale.append(f"{name}.svg")
        if not check:
            figures.draw(make_plan(name), store, FIGURES / name)
            (FIGURES / f"{name}.png").unlink()  # the site and README show the SVG
    if stale:
        print("out of date:" if check else "filled:", ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
