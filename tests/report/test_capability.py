from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bayesperf.report.capability import capability_page, write_report

Make = Callable[..., Any]


class Page(HTMLParser):
    """Tags, ids and references of a page; complains of tags that do not match."""

    VOID = ("meta", "img", "br", "rect", "link", "input", "hr")

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.sources: list[str] = []
        self.events: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"unclosed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                self.targets.append(value or "")
            elif name == "src":
                self.sources.append(value or "")
            elif name.startswith("on"):
                self.events.append(name)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open, f"stray </{tag}>"
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(complete_page: str) -> Page:
    """A complete report."""
    return Page(complete_page)


def test_a_report_is_well_formed_and_loads_nothing(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert all(target.startswith("#") for target in page.targets)
    assert not {"script", "link", "iframe", "object", "form"} & {*page.tags}
    assert page.events == []


def test_every_reference_inside_the_page_exists(page: Page) -> None:
    assert {target.removeprefix("#") for target in page.targets} <= set(page.ids)


def test_every_measurement_is_in_the_appendix(page: Page, table: pd.DataFrame) -> None:
    for identifier in table["measurement_id"]:
        assert identifier in page.text
    assert "4 × " in page.text, "raw samples with their iteration counts"  # noqa: RUF001
    assert "The same for all: " in page.text
    assert "hlo_hash feedc0de" in page.text
    assert "cpu.governor unknown" in page.text, "what could not be read is unknown"


def test_limits_of_transfer_come_before_any_capability(page: Page) -> None:
    text = page.text
    text = text[text.index("Where it may be believed") :]
    assert text.index("fails to transfer") < text.index("What it can do") < text.index("Roofline and bandwidth")
    assert "memory-bound, sizes inside what was measured" in text
    assert text.index("✕ fails") < text.index("? undecided") < text.index("✓ transfers")


def test_what_was_not_learned_is_marked_prior(page: Page) -> None:
    assert "2 of 3 were learned" in page.text
    assert re.search(r"launch overhead 5\.00 \[2\.63, 9\.50\] µs 7\.50 \[1\.25, 45\.0\] µs prior 20 %", page.text)
    assert re.search(r"matmul float32 compute rate 200 \[190, 210\] GFLOP/s .*? learned 99 %", page.text)


def test_caveats_are_stated(page: Page) -> None:
    assert "campaign spread assumed, one campaign seen" in page.text
    assert "exchangeable" in page.text


@pytest.mark.usefixtures("undrawn")
def test_poor_fits_are_told_where_there_are_any(page: Page, table: pd.DataFrame, make_profile: Make) -> None:
    assert "not described" not in page.text
    lines = ["3 of 14 fitted configurations of matmul on a box lie outside"]
    text = Page(capability_page(make_profile(table, poor_fits=lines))).text
    assert text.index("Fitted, but not described") < text.index(lines[0]) < text.index("Assumptions and caveats")


@pytest.mark.usefixtures("undrawn")
def test_without_held_out_measurements_the_report_says_so(table: pd.DataFrame, make_profile: Make) -> None:
    text = Page(capability_page(make_profile(table))).text
    assert "Nothing is known of how far this profile transfers" in text


@pytest.mark.usefixtures("undrawn")
def test_an_unconverged_profile_says_so_before_anything_else(table: pd.DataFrame, make_profile: Make) -> None:
    text = Page(capability_page(make_profile(table, converged=False))).text
    assert text.index("The posterior did not converge") < text.index("Where it may be believed")
    assert "R-hat 1.30 (limit 1.01)" in text
    assert "draw longer chains" in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("share", "title"), [(1.0, "The machine was too noisy"), (0.05, "Some points were disturbed")])
def test_a_noisy_machine_is_said_at_the_top(table: pd.DataFrame, make_profile: Make, share: float, title: str) -> None:
    flagged = table.copy()
    flagged.loc[: int(share * len(table)) - 1, "flags"] = "disturbed+outlier"
    text = Page(capability_page(make_profile(flagged), measurements=flagged)).text
    assert text.index(title) < text.index("Where it may be believed")


def test_a_quiet_machine_has_no_banner(page: Page) -> None:
    assert "noisy" not in page.text
    assert "disturbed" not in page.text


@pytest.mark.usefixtures("undrawn")
def test_failures_are_listed(table: pd.DataFrame, make_profile: Make) -> None:
    failures = pd.DataFrame({"op": ["matmul"], "reason": ["timeout"], "detail": ["killed"], "log": [None]})
    assert "matmul timeout killed" in Page(capability_page(make_profile(table), failures=failures)).text
    none = Page(capability_page(make_profile(table), failures=failures.iloc[:0])).text
    assert "Points that could not be measured None." in none


@pytest.mark.usefixtures("undrawn")
def test_several_targets_are_told_apart(make_measurements: Make, make_profile: Make, make_validation: Make) -> None:
    both: pd.DataFrame = pd.concat(
        [make_measurements("cpu-x1"), make_measurements("cpu-x2", seed=5)], ignore_index=True
    )
    page = Page(capability_page(make_profile(both), validation=make_validation(both), measurements=both))
    # Roofline and bandwidth of each, three of held-out workloads, three parameters over targets.
    assert page.tags.count("figure") == 10
    assert "cpu-x1, cpu-x2" in page.text


@pytest.mark.usefixtures("undrawn")
def test_a_table_without_optional_columns_can_be_reported(make_profile: Make) -> None:
    rows = {"target": "t", "op": ["a", "b"], "flops": [1e9, 0.0], "bytes": [0.0, 1e6], "time_s": 1e-3}
    table = pd.DataFrame({**rows, "measurement_id": ["x", "y"]})
    text = Page(capability_page(make_profile(table.assign(role=None)), measurements=table)).text
    assert "fitted to 2 measurements" in text


@pytest.mark.usefixtures("undrawn")
def test_a_large_table_stays_a_document(make_measurements: Make, make_profile: Make) -> None:
    parts = [make_measurements(f"t{at % 2}", seed=at).assign(process=str(at)) for at in range(120)]
    table = pd.concat(parts, ignore_index=True)
    table["measurement_id"] = [f"id{at}" for at in range(len(table))]
    text = capability_page(make_profile(table), measurements=table)
    assert len(text) < 12_000_000
    assert "further measurements are in the table" in text
    Page(text)


@pytest.mark.usefixtures("undrawn")
def test_the_file_is_written_whole(table: pd.DataFrame, make_profile: Make, tmp_path: Path) -> None:
    write_report(make_profile(table), tmp_path / "sub" / "report.html")
    text = (tmp_path / "sub" / "report.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")
    assert [p.name for p in (tmp_path / "sub").iterdir()] == ["report.html"]


def test_the_same_input_gives_the_same_page(
    complete_page: str, table: pd.DataFrame, make_profile: Make, make_validation: Make
) -> None:
    again = capability_page(make_profile(table), validation=make_validation(table), measurements=table, failures=None)
    assert again == complete_page
