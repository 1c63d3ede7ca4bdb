"""What a broker shows under /metrics, read by Prometheus' own parser and held to its conventions."""

import re

from prometheus_client.parser import text_string_to_metric_families

LINE = re.compile(
    r"# (HELP|TYPE) [a-z_]+ .+"
    r"|[a-z_]+(\{[a-z_]+=\"([^\"\\\n]|\\[\\\"n])*\"(,[a-z_]+=\"([^\"\\\n]|\\[\\\"n])*\")*\})?"
    r" (-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?|[+-]Inf|NaN)"
)


class Exposition:
    """All families by name, each with its samples; fails for a text that breaks a rule."""

    def __init__(self, text: str):
        assert text.endswith("\n")
        for line in text.splitlines():
            assert LINE.fullmatch(line), f"not a line of the format: {line!r}"
        names = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
        assert len(names) == len(set(names)), "a family stands twice"
        assert names == re.findall(r"^# HELP (\S+) ", text, re.MULTILINE)
        self.names = set(names)
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        series = [(s.name, *sorted(s.labels.items())) for f in self.families.values() for s in f.samples]
        assert len(series) == len(set(series)), "a series stands twice"
        for family in self.families.values():
            self._check(family)

    def _check(self, family) -> None:
        assert family.type in ("counter", "gauge", "histogram"), f"{family.name}: no type"
        assert family.samples, f"{family.name}: no series"
        assert re.match("millrace_|process_", family.name), family.name
        counts = family.type == "counter"
        for sample in family.samples:
            assert sample.name.endswith("_total") == counts, f"{sample.name}: {family.type}"
            assert not counts or sample.value >= 0, sample
        if family.type == "histogram":
            self._check_histogram(family)

    def _check_histogram(self, family) -> None:
        assert family.name.endswith(("_seconds", "_bytes")), f"{family.name}: no unit"
        buckets, counts = {}, {}
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            key = tuple(sorted(labels.items()))
            if sample.name.endswith("_bucket"):
                buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
            elif sample.name.endswith("_count"):
                counts[key] = sample.value
        for key, series in buckets.items():
            assert series == sorted(series), f"{family.name}{key}: not in order"
            assert [n for _, n in series] == sorted(n for _, n in series), f"{key}: not cumulative"
            assert series[-1] == (float("inf"), counts[key]), f"{family.name}{key}: count"

    def value(self, name: str, **labels: str) -> float:
        """Of the one series with this name and exactly these labels."""
        found = [
            sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == name and sample.labels == labels
        ]
        assert len(found) == 1, f"{name}{labels}: {len(found)} series"
        return found[0]
