"""Figures as a table in Markdown and as bars in SVG."""

import argparse
import statistics
from collections.abc import Iterable
from html import escape
from pathlib import Path

from figures.cases import FLOOR, OTHERS
from figures.limits import Limit, is_kept, less_is_better, limit_of

Results = dict[str, dict[str, dict[str, float]]]
"""{case: {figure: {broker: value}}}"""

BAR_COLOURS = ("#2f6f9f", "#c7c7c7")
ROW_HEIGHT, BAR_HEIGHT, LABEL_WIDTH, BARS_WIDTH = 40, 14, 250, 430


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


class Median(float):
    """Of several values, of which it knows the least and the most."""

    def __new__(cls, values: Iterable[float]):
        values = sorted(values)
        median = super().__new__(cls, statistics.median(values))
        median.least, median.most = values[0], values[-1]
        return median

    def __str__(self) -> str:
        if self.least == self.most:
            return number(self)
        return f"{number(self)} ({number(self.least)}, {number(self.most)})"


def medians(runs: dict[str, list[dict[str, dict[str, float]]]]) -> Results:
    """Of each figure of {broker: [{case: {figure: value}}]}; of what others used, the most."""
    brokers = list(runs)
    return {
        case: {
            figure: {
                broker: (max if figure == OTHERS else Median)(
                    run[case][figure] for run in runs[broker]
                )
                for broker in brokers
            }
            for figure in runs[brokers[0]][0][case]
        }
        for case in runs[brokers[0]][0]
    }


def asked(limit: Limit, floor: float | None) -> str:
    if limit.absolute is not None:
        return number(limit.absolute)
    of_peer = f"ratio {number(limit.of_peer)}"
    if limit.of_floor is None or floor is None:
        return of_peer
    return f"{of_peer} or {number(limit.of_floor * floor)}"


def verdict(case: str, figure: str, values: list[float], floor: float | None = None) -> str:
    """`values`: ours, and each peer's."""
    limit = limit_of(case, figure)
    if limit is None:
        return ""
    kept = is_kept(limit, values[0], values[1:], floor)
    sign = "≤" if less_is_better(figure) else "≥"
    word = {True: "kept", False: "**missed**", None: "not compared"}[kept]
    return f"{word} ({sign} {asked(limit, floor)})"


def floor_of(figures: dict[str, dict[str, float]], figure: str, of_run: float | None) -> float | None:
    """That of the case, by the broker beside which it took less, where the figure is a broker's CPU."""
    unit = figure.rpartition(" ")[2]
    if "broker CPU" not in figure or f"{FLOOR}, CPU {unit}" not in figures:
        return of_run
    return min(figures[f"{FLOOR}, CPU {unit}"].values())


def table(results: Results, brokers: list[str], floor: float | None = None) -> str:
    peers = brokers[1:]
    ratios = ["ratio"] if len(peers) == 1 else [f"ratio to {peer}" for peer in peers]
    heads = ["case", "figure", *brokers, *ratios, "asked", "others %"]
    lines = [
        "| " + " | ".join(heads) + " |",
        "| --- | --- |" + " ---: |" * (len(brokers) + len(peers)) + " --- | ---: |",
    ]
    for case, figures in results.items():
        others = number(max(figures[OTHERS].values())) if OTHERS in figures else ""
        for figure, by_broker in figures.items():
            if figure == OTHERS:
                continue
            values = [by_broker[broker] for broker in brokers]
            cells = [case, figure, *map(str, values)]
            cells += [f"{values[0] / peer:.2f}" if peer else "" for peer in values[1:]]
            cells += [verdict(case, figure, values, floor_of(figures, figure, floor)), others]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def missed(results: Results, brokers: list[str], floor: float | None = None) -> list[str]:
    found = []
    for case, figures in results.items():
        for figure, by_broker in figures.items():
            values = [by_broker[broker] for broker in brokers]
            word = verdict(case, figure, values, floor_of(figures, figure, floor))
            if word.startswith("**missed"):
                found.append(f"{case}: {figure}")
    return found


def words_to_repeat() -> list[str]:
    """The arguments, without where this machine keeps its build."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("--write", action="store_true")
    return parser.parse_known_args()[1]


def write_section(path: Path, name: str, text: str) -> None:
    """Between the marks of that name, which keeps what people wrote around them."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->\n"
    before, rest = path.read_text().split(begin)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


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
