"""A profile and a validation made of simulated draws: the report's own logic is tested without a sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesperf.model import LIMITS
from bayesperf.report.capability import capability_page
from bayesperf.schema import validate, with_ids
from bayesperf.store import with_provenance


@dataclass(frozen=True)
class Check:
    """A diagnostic, as profiles have them."""

    name: str
    value: float
    limit: float
    passed: bool
    where: str = ""
    remedy: str = ""


@dataclass
class SimulatedPrediction:
    """Draws of time, and what bounds each workload."""

    draws: xr.DataArray
    limits: xr.DataArray

    @property
    def parts(self) -> Any:
        """Noiseless log times, as predictions have them."""
        return SimpleNamespace(log_time=np.log(self.draws.to_numpy()))


@dataclass(frozen=True)
class SimulatedModel:
    """What a report asks of a model: which operations it describes."""

    ops: tuple[str, ...]
    predicts_corunners: bool = False

    def observations(self, encoded: Any) -> pd.DataFrame:
        """One row per operation."""
        return pd.DataFrame({"op": self.ops})


@dataclass
class SimulatedProfile:
    """What a report asks of a profile, answered from a plain roofline with known rates and log-normal draws."""

    table: pd.DataFrame
    converged: bool = True
    model_name: str = "roofline"
    evidence: Sequence[str] | None = None
    poor_fits: Sequence[str] = ()
    spec_sheets: pd.DataFrame | None = None
    undescribed: Sequence[str] = ()
    predicts_corunners: bool = False
    tree: Any = field(default_factory=xr.DataTree)
    inference: Any = field(default_factory=lambda: SimpleNamespace(encoded=None))
    facts: dict[str, Any] = field(
        default_factory=lambda: {
            "versions": {"bayesperf": "0.1.0", "pymc": None},
            "fingerprint": "0123abcd",
            "seed": 7,
            "caveats": ["campaign spread assumed, one campaign seen"],
        }
    )

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return list(dict.fromkeys(self.table["target"]))

    @property
    def model(self) -> SimulatedModel:
        """Describes what was measured, but for `undescribed`."""
        ops = sorted(set(self.table["op"]) - set(self.undescribed))
        return SimulatedModel(tuple(ops), self.predicts_corunners)

    @property
    def gate(self) -> list[Check]:
        """A passing and, if not converged, a failing check."""
        return [
            Check("R-hat", 1.004 if self.converged else 1.3, 1.01, self.converged, "tau[0]", "draw longer chains"),
            Check("divergences", 0.0, 0.0, True),
        ]

    def predict(
        self, workloads: pd.DataFrame, target: str | None = None, *, draws: int = 100, seed: int = 0, **_: Any
    ) -> SimulatedPrediction:
        """Draw times of a roofline of 200 GFLOP/s, 20 GB/s and 5 microseconds."""
        random = np.random.default_rng(seed)
        compute = workloads["flops"].to_numpy(float) / 2e11
        footprint = workloads.get("working_set_bytes", workloads["bytes"]).to_numpy(float)
        memory = workloads["bytes"].to_numpy(float) / (2e10 + 1.3e11 / (1 + footprint / 2e6))
        if "corunners" in workloads:
            memory = memory * np.where(workloads["corunners"].isna(), 1.0, 1.5)
        time = 5e-6 + np.maximum(compute, memory)
        noise = np.exp(0.06 * random.standard_normal((draws, 1)) + 0.02 * random.standard_normal((draws, len(time))))
        terms = np.stack([compute, memory, 0 * memory, np.full(len(time), 5e-6), 0 * memory], axis=1)
        limits = (terms == terms.max(axis=1, keepdims=True)).astype(float)
        return SimulatedPrediction(
            xr.DataArray(time * noise, dims=("draw", "workload")),
            xr.DataArray(limits, dims=("workload", "limit"), coords={"limit": list(LIMITS)}),
        )

    def parameters(self, interval: float = 0.9) -> pd.DataFrame:
        """Three parameters per target; the last is not learned."""
        assert interval == 0.9
        rows = []
        for target in self.targets:
            ids = self.evidence or self.table.loc[self.table["target"] == target, "measurement_id"].tolist()
            for name, label, unit, median, spread, contraction in (
                ("compute_rate", "matmul float32", "FLOP/s", 2e11, 1.05, 0.99),
                ("bandwidth", "main memory", "B/s", 2e10, 1.1, 0.95),
                ("overhead", "launch", "s", 5e-6, 1.9, 0.2),
            ):
                rows.append(
                    {
                        "target": target,
                        "parameter": name,
                        "label": label,
                        "unit": unit,
                        "median": median,
                        "lower": median / spread,
                        "upper": median * spread,
                        "prior_median": median * 1.5,
                        "prior_lower": median / 4,
                        "prior_upper": median * 9,
                        "contraction": contraction,
                        "learned": contraction >= 0.5,
                        "evidence": list(ids),
                    }
                )
        return pd.DataFrame(rows)


@dataclass
class SimulatedValidation:
    """Verdicts and rows, as validations have them."""

    groups: pd.DataFrame
    rows: pd.DataFrame
    scores: pd.DataFrame
    settings: dict[str, Any] = field(
        default_factory=lambda: {"tolerance": 0.1, "alpha": 0.05, "estimand": "same campaign"}
    )
    notes: tuple[str, ...] = ("what was assumed",)
    moved: dict[Any, Any] = field(default_factory=dict)

    @property
    def any_fails(self) -> bool:
        """Whether any regime fails."""
        return bool((self.groups["verdict"] == "fails").any())


def measurements(target: str = "some-cpu-2-core-x2", seed: int = 1) -> pd.DataFrame:
    """A small but complete measurement table: streams, products and launches, some held out."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for size in np.geomspace(1e5, 4e8, 12):
        for op, share in (("stream_triad", 2 / 16), ("stream_copy", 0.0)):
            rows.append({"op": op, "dtype": "float32", "bytes": size, "flops": size * share, "working_set_bytes": size})
    for n in (64, 128, 256, 512, 1024, 2048):
        for dtype, width in (("float32", 4), ("bfloat16", 2)):
            rows.append({"op": "matmul", "dtype": dtype, "flops": 2.0 * n**3, "bytes": 3.0 * width * n * n, "m": n})
    for op in ("softmax", "attention_block", "mlp_block"):
        for n in (256, 1024):
            row = {"op": op, "dtype": "float32", "flops": 5.0 * n * n, "bytes": 8.0 * n * n, "rows": n, "cols": n}
            rows.append({**row, "role": "heldout"})
    table = pd.DataFrame(rows).assign(target=target, campaign="2026-11-30", process="0", statistic="slope")
    table["working_set_bytes"] = table["working_set_bytes"].fillna(table["bytes"])
    clean = SimulatedProfile(table.assign(measurement_id="x")).predict(table, draws=1).draws.to_numpy()[0]
    time = clean * np.exp(0.05 * random.standard_normal(len(table)))
    table["time_s"], table["time_se_s"] = time, 0.01 * time
    table["samples_iterations"] = [[1, 2, 4]] * len(table)
    table["samples_s"] = [[t, 2 * t, 4 * t] for t in time]
    table["stop_reason"] = "precise"
    table["flags"] = [None] * (len(table) - 1) + ["outlier"]
    table["hlo_hash"] = "feedc0de"
    table["provenance_id"] = "p0"
    checked = with_ids(validate(table), source=f"{target}.parquet")
    return with_provenance(checked, {"p0": {"jax": "0.12", "cpu": {"model": "Some CPU", "governor": None}}})


def profile_of(table: pd.DataFrame, **changes: Any) -> SimulatedProfile:
    """The profile fitted to the rows that are not held out."""
    fitted = table[table["role"] != "heldout"].reset_index(drop=True)
    fitted.attrs = table.attrs
    return SimulatedProfile(fitted, **changes)


def validation_of(table: pd.DataFrame, verdicts: Sequence[str] = ("fails", "undecided", "transfers")) -> Any:
    """One group per held-out operation."""
    random = np.random.default_rng(3)
    held = table[table["role"] == "heldout"].reset_index(drop=True)
    rows = held[["target", "op", "dtype", "flops", "bytes", "rows", "cols"]].assign(
        measurement_ids=pd.Series([[i] for i in held["measurement_id"]]),
        measured_s=held["time_s"],
        median_s=held["time_s"] * np.exp(0.1 * random.standard_normal(len(held))),
        limit="memory",
        supported=True,
        pit=random.uniform(size=len(held)),
    )
    rows["lower_s"], rows["upper_s"] = rows["median_s"] / 1.12, rows["median_s"] * 1.12
    rows["inside"] = (rows["measured_s"] > rows["lower_s"]) & (rows["measured_s"] < rows["upper_s"])
    keys = list(dict.fromkeys(zip(rows["target"], rows["op"], strict=True)))
    rows["group"] = [keys.index(key) for key in zip(rows["target"], rows["op"], strict=True)]
    groups = pd.DataFrame(
        {
            "group": range(len(keys)),
            "target": [target for target, _ in keys],
            "regime": ["memory, inside", "compute, outside", "overhead, inside"] * (len(keys) // 3),
            "reason": "because of what was seen",
            "verdict": [verdicts[at % len(verdicts)] for at in range(len(keys))],
            "advice": ["measure 12 more rows" if at % 3 == 1 else "" for at in range(len(keys))],
            "n_rows": 2,
            "p_same": 0.3,
            "p_fresh": 0.6,
            "shift": 0.04,
            "shift_lower": -0.02,
            "shift_upper": 0.1,
            "spread_ratio": 1.2,
            "coverage_90": 0.83,
        }
    )
    scores = pd.DataFrame(
        {
            "group": [*(f"{target}: memory, inside" for target, _ in keys), "all"],
            "n_rows": 2,
            "crps": 0.05,
            "crps_baseline": 0.2,
            "interval_score": 0.4,
            "interval_score_baseline": 1.1,
        }
    )
    return SimulatedValidation(groups, rows, scores)


@pytest.fixture(scope="session")
def complete_page() -> str:
    """A complete report: fitted and held-out rows, verdicts, figures."""
    table = measurements()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayesperf.report.content.poor_fits", lambda profile: list(profile.poor_fits))
        profile: Any = profile_of(table)
        return capability_page(profile, validation=validation_of(table), measurements=table, failures=None)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn but not written: most of a page's time, and its text does not depend on it."""
    for module in ("capability", "content"):
        monkeypatch.setattr(f"bayesperf.report.{module}.to_uri", lambda figure: "data:image/svg+xml;base64,")


@pytest.fixture(autouse=True)
def simulated_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poor fits are those that a simulated profile says it has: there is no posterior to look for them in."""
    monkeypatch.setattr("bayesperf.report.content.poor_fits", lambda profile: list(profile.poor_fits))


@pytest.fixture
def table() -> pd.DataFrame:
    """A measurement table."""
    return measurements()


@pytest.fixture
def make_profile() -> Callable[..., SimulatedProfile]:
    """Make a profile of a measurement table."""
    return profile_of


@pytest.fixture
def make_validation() -> Callable[..., Any]:
    """Make a validation of a measurement table."""
    return validation_of


@pytest.fixture
def make_measurements() -> Callable[..., pd.DataFrame]:
    """Make a measurement table of a target."""
    return measurements
