"""What the team does: an episode that plays, or a table."""

from typing import Any

from markupsafe import Markup

from spacql.report.episodes import beside_the_log, moving
from spacql.report.markup import data, join, table, tag
from spacql.report.subject import Subject

MOST = 6  # teams that can be looked at


def team(subject: Subject) -> Markup | None:
    have = [found for found in subject.shown if any(run.folder for run in found.runs)][:MOST]
    films = [film for film in map(moving, have) if film is not None]
    if films:
        return _player(films)
    for found in have:
        steps = beside_the_log(found)
        if steps is not None:
            caption = f"{found.label} on {found.dataset}: an episode of the log, step by step"
            words = "This world cannot be drawn here. What each agent did in an episode of the "
            words += "log, and what its policy would do at the same observations."
            return join([tag("p", words), table(*steps, caption=caption)])
    return None


def _player(films: list[dict[str, Any]]) -> Markup:
    def button(action: str, label: str, sign: str) -> Markup:
        return tag("button", tag("span", sign, aria_hidden="true"), type="button",
                   data_do=action, aria_label=label, title=label)  # fmt: skip

    teams = [tag("option", film["name"], value=k) for k, film in enumerate(films)]
    episodes = [
        tag("option", f"episode {k + 1}", value=k) for k in range(len(films[0]["episodes"]))
    ]
    steps = len(films[0]["episodes"][0]["reward"]) - 1
    controls = tag(
        "div",
        button("back", "One step back", "◂"),
        button("play", "Play", "▶"),
        button("next", "One step on", "▸"),
        tag("input", type="range", min="0", max=steps, value=steps, step="1",
            aria_label="Step of the episode"),
        class_="controls",
    )  # fmt: skip
    chosen = tag(
        "div",
        tag("label", "Team ", tag("select", teams, data_pick="team")) if teams[1:] else None,
        tag("label", "Episode ", tag("select", episodes, data_pick="episode")),
        class_="chosen",
    )
    return tag(
        "div",
        tag("p", films[0]["name"], class_="film-name") if not teams[1:] else None,
        chosen,
        tag("canvas", "An episode of the team, drawn step by step.", width="560", height="560",
            role="img", aria_label="The agents and what is around them, seen from above"),
        controls,
        tag("p", aria_live="polite", class_="said"),
        tag("div", class_="key", aria_hidden="true"),
        tag("script", Markup(data(films)), type="application/json"),
        class_="player",
    )  # fmt: skip
