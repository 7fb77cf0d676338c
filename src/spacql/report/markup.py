"""HTML whose every value is escaped: text becomes markup only through `tag`."""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup, escape

from spacql.evaluation.intervals import written

Child = Any  # Markup stays as it is, None is left out, lists are joined, all else is escaped
VOID = frozenset({"br", "circle", "hr", "input", "line", "link", "meta", "path", "rect"})


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """An element. `class_` stands for class and `data_tip` for data-tip; None and False are left
    out, True is an attribute without a value."""
    head = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        head.append(key if value is True else Markup('{}="{}"').format(key, value))
    start = Markup("<" + " ".join(head))
    if name in VOID and not children:
        return start + Markup("/>")
    return start + Markup(">") + join(children) + Markup("</" + name + ">")


def join(children: Iterable[Child], between: str = "") -> Markup:
    parts = [
        join(child) if isinstance(child, list | tuple) else escape(child)
        for child in children
        if child is not None
    ]
    return escape(between).join(parts)


def data(value: Any) -> str:
    """JSON without characters that could end the element it stands in; NaN becomes null."""
    text = json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: float | None, digits: int = 1) -> str:
    """As people write it: a dash for none, no "-0.0", thousands apart, a real minus."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:z,.{digits}f}".replace("-", "−")


def short(value: float | None) -> str:
    """Three significant digits, for quantities of any size."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0 or 0.001 <= abs(value) < 1e6:
        size = 0 if value == 0 else math.floor(math.log10(abs(value)))
        return number(value, max(0, 2 - size))
    return f"{value:.2e}".replace("-", "−")


def beside(low: float, high: float) -> Callable[[float | None], str]:
    """How the numbers beside an interval are shown."""
    text = written(low, high)
    return lambda value: number(None) if value is None else minus(text(value))


def minus(text: str) -> str:
    """The same with a real minus before its numbers, as everywhere on a page."""
    return re.sub(r"(?<![\w)])-(?=\d)", "−", text)


def prose(text: str) -> Markup:
    """A sentence that was written for the terminal: with real minuses, and code for backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # they are not in pairs
        return join([minus(text)])
    return join(tag("code", part) if k % 2 else minus(part) for k, part in enumerate(parts))


def span(low: float, high: float, digits: int = 1) -> str:
    """An interval."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(many: int, one: str, several: str = "") -> str:
    """ "1 seed", "3 seeds"."""
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def table(head: list[Child], rows: Iterable[list[Child]], *, caption: str, sort: bool = True,
          class_: str = "") -> Markup:  # fmt: skip
    """A table that sorts by any column whose head is text. A cell may be a pair of what is shown
    and the number it is sorted by; the first cell names its row."""

    def cell(place: int, value: Child) -> Markup:
        shown, key = value if isinstance(value, tuple) else (value, None)
        name = "th" if place == 0 else "td"
        scope = "row" if place == 0 else None
        numeric = "num" if key is not None else None
        return tag(name, shown, scope=scope, data_key=key, class_=numeric)

    rows = list(rows)

    def column(place: int, title: Child) -> Markup:
        numeric = bool(rows) and isinstance(rows[0][place], tuple)
        if sort and title and not isinstance(title, Markup):
            title = tag("button", title, type="button")
        return tag("th", title, scope="col", class_="num" if numeric else None)

    titles = [column(k, title) for k, title in enumerate(head)]
    lines = [tag("tr", [cell(k, value) for k, value in enumerate(row)]) for row in rows]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", titles)),
            tag("tbody", lines),
            class_=("sortable " if sort else "") + class_,
        ),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
