"""The page: sections in one HTML file that needs nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from spacql.errors import InputError
from spacql.files import new_file
from spacql.report import fits, inside, repeat, sections, show, verdicts
from spacql.report.markup import count, join, tag
from spacql.report.overview import overview
from spacql.report.source import gather
from spacql.report.subject import FEW, Section, Subject
from spacql.report.teams import teams

LIMIT = 5_000_000  # bytes


def report(places: Sequence[Path], out: Path, title: str = "") -> Path:
    """Write the report of all trainings below `places`: run folders, fits, a folder of results."""
    found, begun = fits.below(places), fits.unfinished(places)
    runs = fits.as_candidates(gather(places, none=bool(found or begun)), found, begun)
    shown, others = teams(runs, choose=all(run.folder is None for run in runs))
    if len(found) == 1:  # in the order of its table, the chosen one first
        shown = sorted(shown, key=lambda team: found[0].order.get(team.label, len(shown)))
    subject = Subject(shown, others, found)
    names = list(subject.datasets)
    algorithms = list(dict.fromkeys(team.algorithm for team in shown))
    of = [*(fit.name for fit in found), *(fit.name for fit in begun)]
    if not title and of:
        title = f"A fit of {of[0]}" if len(of) == 1 else f"{len(of)} fits"
    if not title:
        where = verdicts.listed(names) if len(names) < 4 else count(len(names), "dataset")
        who = (
            verdicts.listed(algorithms) if len(algorithms) < 4 else f"{len(algorithms)} algorithms"
        )
        title = f"{who} on {where}"
    if of:
        leads = [fits.headline(found) if found else None, *map(fits.waiting, begun)]
        return write(out, title, of_trainings(subject), lead=join(leads, " "))
    lead = verdicts.headlines(subject.datasets) if len(names) <= FEW else ""
    if not lead:
        lead = overview(subject)
    return write(out, title, of_trainings(subject), lead=lead)


def of_trainings(subject: Subject) -> list[Section]:
    """The sections about trainings. What has nothing to say is left out."""
    made = [
        ("learnt", "What was learnt, from what", sections.learnt),
        ("scores", "How good is it?", sections.scores),
        ("real", "Is that real?", sections.real),
        ("training", "How training went", sections.training),
        ("inside", "What the algorithm did", inside.inside),
        ("team", "What the team does", show.team),
        ("repeat", "How to repeat it", repeat.repeat),
    ]
    of_fits = {"scores": fits.good, "real": fits.real, "inside": fits.distances}
    found = []
    for name, title, make in made:
        bodies = [
            join([tag("h3", fit.name) if subject.fits[1:] else None, of_fits[name](fit)])
            for fit in subject.fits
            if name in of_fits
        ]
        bodies += [body] if (body := make(subject)) else []
        found += [Section(name, title, join(bodies))] if bodies else []
    return found


def write(out: Path, title: str, found: Sequence[Section], lead: str = "") -> Path:
    """One file: styles, script and data inside, nothing fetched."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out}: a report is an HTML file. For example: --out report.html")
    text = render(title, found, lead)
    size = len(text.encode())
    if size > LIMIT:
        raise InputError(
            f"The report would have {size / 1e6:.1f} MB, more than {LIMIT / 1e6:.0f}: "
            "choose fewer runs."
        )
    with new_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return out


def render(title: str, found: Sequence[Section], lead: str = "") -> str:
    style, script = _asset("page.css"), _asset("page.js")
    body = join(
        [
            tag("a", "Skip to the content", href="#main", class_="skip"),
            tag("header", tag("p", "spacql report", class_="brand"), tag("h1", title),
                tag("p", lead, class_="lead") if lead else None),
            tag("nav", tag("ul", [tag("li", tag("a", s.title, href=f"#{s.id}")) for s in found]),
                aria_label="Sections"),
            tag("main", [tag("section", tag("h2", s.title), s.body, id=s.id) for s in found],
                id="main"),
            tag("div", id="tip", role="status", hidden=True),
            tag("script", Markup(script)),
        ]
    )  # fmt: skip
    # Only this page's own script may run, whatever the names in it look like.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    policy += f"script-src 'sha256-{digest}'"
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("link", rel="icon", href="data:,"),
            tag("title", title),
            tag("style", Markup(style)),
        ]
    )
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    return "<!doctype html>\n" + str(page) + "\n"


def _asset(name: str) -> str:
    return (files("spacql.report") / name).read_text(encoding="utf-8")
