"""How to repeat it: commands, configuration, versions, identity of the data."""

import shlex
from typing import Any

from markupsafe import Markup

from spacql.report import fits
from spacql.report.markup import join, table, tag
from spacql.report.subject import Subject
from spacql.report.teams import Team, unusual


def command(team: Team) -> str:
    """What trains this team again: settings that `spacql train` would choose anyway are left to
    it, all others are flags."""
    run = team.first
    words = ["spacql", "train", run.algorithm, "--data", run.data or run.dataset]
    words += ["--seeds", *(str(member.seed) for member in team.runs)]
    for name, value in unusual(run).items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        else:
            values = value if isinstance(value, list | tuple) else [value]
            words += [flag, *(str(v) for v in values)]
    return shlex.join(words)


def repeat(subject: Subject) -> Markup:
    lines = [*map(fits.command, subject.fits), *map(command, subject.shown)]
    commands = [tag("pre", tag("code", line)) for line in lines]
    listing: Any = commands
    if len(commands) > 6:
        listing = tag("details", tag("summary", f"{len(commands)} commands"), commands)
    parts = [tag("h3", "Commands"), listing, _datasets(subject), _settings(subject)]
    return join([*parts, _versions(subject)])


def _datasets(subject: Subject) -> Markup:
    seen = {
        (run.dataset, run.dataset_seed, run.identity): run
        for team in subject.shown
        for run in team.runs
    }
    rows = [
        [name, ("–" if seed is None else str(seed), -1 if seed is None else seed),
         tag("code", identity[:16] or "–", title=identity)]
        for name, seed, identity in sorted(seen, key=lambda key: (key[0], key[1] or 0, key[2]))
    ]  # fmt: skip
    caption = "Datasets, and what their bytes hash to (SHA-256, the first sixteen digits)"
    found = table(["dataset", "seed", "identity"], rows, caption=caption)
    if len(rows) > 6:
        return tag("details", tag("summary", f"{len(rows)} datasets"), found)
    return join([tag("h3", "Datasets"), found])


def _settings(subject: Subject) -> Markup:
    """A row for each hyperparameter. Datasets share a column where they share a configuration."""
    columns: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for team in subject.shown:
        config = dict(team.first.config)
        place = columns.setdefault((team.label, repr(sorted(config.items()))), (config, []))
        place[1].append(team.dataset)
    names = sorted({name for config, _ in columns.values() for name in config})
    many = len(subject.datasets) > 1
    head = ["setting", *(f"{label} ({', '.join(where)})" if many else label
                         for (label, _), (_, where) in columns.items())]  # fmt: skip
    rows = [[name, *(_value(config.get(name)) for config, _ in columns.values())] for name in names]
    found = table(head, rows, caption="Configuration")
    return tag("details", tag("summary", "Configuration"), found)


def _value(value: Any) -> str:
    if value is None:
        return "–"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _versions(subject: Subject) -> Markup:
    found: dict[str, set[str]] = {}
    for team in subject.shown:
        for run in team.runs:
            for name, version in run.versions.items():
                found.setdefault(str(name), set()).add(str(version))
    text = ", ".join(f"{name} {' and '.join(sorted(found[name]))}" for name in found)
    return tag("p", "Made with ", text or "versions that were not recorded", ".", class_="note")
