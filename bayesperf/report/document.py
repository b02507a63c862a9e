"""The capability profile as a document for programs: what the page says, in SI units, with its evidence.

`schema` is published with the package as ``schemas/capability-1.json`` (JSON Schema 2020-12). Fields may be added in
one version; none is removed and none changes its meaning without a new `VERSION`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "VERSION",
    "Assumptions",
    "Attained",
    "Basis",
    "Bottleneck",
    "Capability",
    "Check",
    "Collective",
    "EvidenceSet",
    "Heldout",
    "Interval",
    "Measurement",
    "Parameter",
    "Plateau",
    "Range",
    "Regime",
    "Sensitivity",
    "Slowdown",
    "Spread",
    "Unmodelled",
    "schema_text",
]

VERSION = 1

Section = Literal["compute", "memory", "movement", "interconnect", "contention", "overhead", "variability", "other"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Interval(_Part):
    """A median with its equal-tailed 90 % interval."""

    median: float
    lower: float
    upper: float


class Basis(_Part):
    """What an interval rests on: effective numbers, and the set of measurements."""

    measurements: int
    configurations: int
    targets: int
    stacks: int
    campaigns: int
    evidence: str | None = Field(description="tag of the set in `evidence`, such as E3")


class Attained(_Part):
    """A posterior beside the spec sheet."""

    column: str = Field(description="column of the spec sheet")
    words: str
    value: float = Field(description="what the sheet says, for all devices that the target has")
    share: Interval = Field(description="posterior over sheet, 1")
    source: str | None = Field(default=None, description="where the sheet has the value from, if it says so")


class Sensitivity(_Part):
    """Power-scaling sensitivity to prior and likelihood (Kallioinen et al. 2024)."""

    prior: float | None
    likelihood: float | None
    diagnosis: str


class Parameter(_Part):
    """A named parameter of the model."""

    section: Section
    parameter: str
    target: str = Field(description="empty: shared by all targets")
    label: str
    unit: str
    posterior: Interval
    prior: Interval
    contraction: float | None = Field(description="1 - Var_posterior / Var_prior of the logs")
    learned: bool = Field(description="false: it is the prior that speaks, not these measurements")
    attained: Attained | None
    sensitivity: Sensitivity | None
    basis: Basis


class Plateau(_Part):
    """Working sets over which the predicted bandwidth of an operation stays the same."""

    target: str
    op: str
    from_bytes: float
    to_bytes: float
    bandwidth: Interval = Field(description="predictive, B/s")
    basis: Basis


class Range(_Part):
    """Working sets, and arithmetic intensities, at which one limit is the most probable."""

    limit: str
    from_bytes: float
    to_bytes: float
    from_intensity: float | None = Field(default=None, description="FLOP/B; null where nothing is moved")
    to_intensity: float | None = Field(default=None, description="FLOP/B; null where nothing is moved")
    configurations: int


class Bottleneck(_Part):
    """What bounds a class of workloads: posterior probabilities, averaged over the class's configurations."""

    target: str
    workloads: str
    limits: dict[str, float]
    most_probable: str
    ranges: list[Range]
    basis: Basis


class Slowdown(_Part):
    """A workload beside others: time over its time alone."""

    target: str
    victim: str
    beside: str
    measured: Interval = Field(description="median of processes; bounds are the lowest and the highest ratio seen")
    predicted: Interval | None = Field(description="noiseless, by the model; null where it does not predict it")
    basis: Basis


class Collective(_Part):
    """A collective operation at one message size."""

    target: str
    op: str
    n_devices: float | None
    message_bytes: float
    time_s: float
    bus_bytes_per_s: float
    basis: Basis


class Regime(_Part):
    """Whether the profile transfers to held-out workloads of one kind."""

    target: str
    regime: str
    verdict: Literal["fails", "undecided", "transfers"]
    reason: str
    advice: str
    shift: Interval = Field(description="log of measured over predicted time")
    p_same: float | None
    p_fresh: float | None
    spread_ratio: float | None
    coverage_90: float | None
    basis: Basis


class Heldout(_Part):
    """A held-out configuration, predicted first, then compared."""

    target: str
    workload: str
    measured_s: float
    predicted_s: Interval
    inside: bool
    pit: float | None
    limit: str
    supported: bool
    evidence: str | None


class Spread(_Part):
    """Relative standard deviations of repeats: within a process, between processes, between campaigns."""

    target: str
    probe: str
    rows: int
    within: float | None
    process: float | None
    process_lower: float | None
    process_upper: float | None
    campaign: float | None
    campaign_lower: float | None
    campaign_upper: float | None


class Unmodelled(_Part):
    """An operation that was measured and that the model does not describe."""

    target: str
    op: str
    time_s: Interval = Field(description="median, shortest and longest of the configurations")
    rate: str
    basis: Basis


class Check(_Part):
    """One check of the diagnostics gate."""

    name: str
    value: float | None
    limit: float | None
    passed: bool
    where: str
    remedy: str


class Assumptions(_Part):
    """What is taken as exchangeable, and how many of each stand behind it."""

    rows: int
    targets: int
    stacks: int
    campaigns: dict[str, int] = Field(description="by target")
    statements: list[str]


class EvidenceSet(_Part):
    """Measurements that a number rests on."""

    tag: str
    what: str
    measurement_ids: list[str]


class Measurement(_Part):
    """Where a measurement comes from; its samples are in the table, under its id."""

    measurement_id: str
    target: str
    what: str
    role: str
    time_s: float
    campaign: str | None
    provenance_id: str | None
    point_id: str | None
    hlo_hash: str | None


class Capability(_Part):
    """A capability profile."""

    schema_version: Literal[1] = 1
    kind: Literal["bayesperf-capability"] = "bayesperf-capability"
    title: str
    model: str
    model_version: str
    targets: list[str]
    converged: bool
    interval: float
    seed: int | None = Field(default=None, description="of the predictive draws; the same one gives the same document")
    overall: dict[str, Any] | None = Field(description="counts of verdicts; null without held-out measurements")
    regimes: list[Regime]
    parameters: list[Parameter]
    plateaus: list[Plateau]
    bottlenecks: list[Bottleneck]
    slowdowns: list[Slowdown]
    collectives: list[Collective]
    unmodelled: list[Unmodelled]
    heldout: list[Heldout]
    spreads: list[Spread]
    gate: list[Check]
    poor_fits: list[str]
    sensitivity: str = Field(description="whether prior sensitivity was computed, else why not")
    assumptions: Assumptions
    caveats: list[str]
    facts: dict[str, Any]
    evidence: list[EvidenceSet]
    measurements: list[Measurement]
    provenance: dict[str, Any]


def schema_text() -> str:
    """The published schema, as the package ships it."""
    return (files("bayesperf.report") / "schemas" / f"capability-{VERSION}.json").read_text(encoding="utf-8")


def generated_schema() -> str:
    """The schema as these classes have it; a test holds it against the published one."""
    schema = Capability.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"
