"""Figures as a table in Markdown and as bars in SVG."""

from collections.abc import Iterable
from html import escape

from figures.cases import OTHERS
from figures.limits import is_kept, less_is_better, limit_of

Results = dict[str, dict[str, dict[str, float]]]
"""{case: {figure: {broker: value}}}"""

BAR_COLOURS = ("#2f6f9f", "#c7c7c7")
ROW_HEIGHT, BAR_HEIGHT, LABEL_WIDTH, BARS_WIDTH = 40, 14, 250, 430


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def verdict(case: str, figure: str, values: list[float]) -> str:
    limit = limit_of(case, figure)
    if limit is None:
        return ""
    kept = is_kept(limit, values[0], values[1] if len(values) > 1 else None)
    bound = (
        f"{number(limit.absolute)}"
        if limit.absolute is not None
        else f"ratio {number(limit.of_peer)}"
    )
    sign = "≤" if less_is_better(figure) else "≥"
    word = {True: "kept", False: "**missed**", None: "not compared"}[kept]
    return f"{word} ({sign} {bound})"


def table(results: Results, brokers: list[str]) -> str:
    compared = len(brokers) > 1
    heads = ["case", "figure", *brokers, *(["ratio"] if compared else []), "asked", "others %"]
    lines = [
        "| " + " | ".join(heads) + " |",
        "| --- | --- |" + " ---: |" * (len(brokers) + compared) + " --- | ---: |",
    ]
    for case, figures in results.items():
        others = max(figures.get(OTHERS, {"": 0.0}).values())
        for figure, by_broker in figures.items():
            if figure == OTHERS:
                continue
            values = [by_broker[broker] for broker in brokers]
            cells = [case, figure, *map(number, values)]
            if compared:
                cells.append(f"{values[0] / values[1]:.2f}" if values[1] else "")
            cells += [verdict(case, figure, values), number(others)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def missed(results: Results, brokers: list[str]) -> list[str]:
    found = []
    for case, figures in results.items():
        for figure, by_broker in figures.items():
            word = verdict(case, figure, [by_broker[broker] for broker in brokers])
            if word.startswith("**missed"):
                found.append(f"{case}: {figure}")
    return found


def bars(title: str, results: Results, figure_ending: str, brokers: list[str]) -> str:
    """One group of bars for each figure with that ending; each group has its own scale."""
    rows = [
        (f"{case}: {figure}" if figure != figure_ending else case, by_broker)
        for case, figures in results.items()
        for figure, by_broker in figures.items()
        if figure.endswith(figure_ending)
    ]
    height = 60 + ROW_HEIGHT * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL_WIDTH + BARS_WIDTH + 90}"'
        f' height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
        *legend(brokers),
    ]
    for at, (label, by_broker) in enumerate(rows):
        parts += row(label, [by_broker[broker] for broker in brokers], 50 + at * ROW_HEIGHT)
    return "\n".join([*parts, "</svg>"]) + "\n"


def legend(brokers: list[str]) -> Iterable[str]:
    for at, (broker, colour) in enumerate(zip(brokers, BAR_COLOURS)):
        x = LABEL_WIDTH + at * 130
        yield f'<rect x="{x}" y="29" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="38">{escape(broker)}</text>'


def row(label: str, values: list[float], y: int) -> Iterable[str]:
    widest = max(values) or 1
    yield f'<text x="10" y="{y + 18}">{escape(label)}</text>'
    for at, (value, colour) in enumerate(zip(values, BAR_COLOURS)):
        width = max(1, round(BARS_WIDTH * value / widest))
        top = y + at * (BAR_HEIGHT + 1)
        yield (
            f'<rect x="{LABEL_WIDTH}" y="{top}" width="{width}" height="{BAR_HEIGHT}"'
            f' fill="{colour}"/>'
        )
        yield f'<text x="{LABEL_WIDTH + width + 6}" y="{top + 11}">{number(value)}</text>'
