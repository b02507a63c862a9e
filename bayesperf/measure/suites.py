"""Suites: TOML files beside the probes, or a user's own, that name probes, sweeps and budgets."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bayesperf.errors import InputError, UnknownNameError

__all__ = [
    "Budget",
    "Condition",
    "ContentionSweep",
    "Kind",
    "PlatformOverride",
    "ProbeSweep",
    "Quantity",
    "Scope",
    "Suite",
    "available_suites",
    "load_suite",
]

Scope = Literal["one", "all"]

Condition = Literal["hot+burst", "hot+sustained", "cold+burst"]

Quantity = Literal[
    "compute", "bandwidth", "levels", "overhead", "ridge", "latency", "transfer", "communication", "contention"
]
"""What a suite can identify: compute rate by dtype; bandwidth of main memory; bandwidth over the working set; cost of a
launch; sharpness of the roofline's corner; latency of a dependent access; links between host and devices; collectives;
how a co-runner slows."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Budget(_Strict):
    """Time and trouble to spend on a point in one process.

    Attributes
    ----------
    point_s
        Seconds of timed rounds after which sampling stops, the target reached or not.
    longest_share
        Share of `point_s` that the longest iteration count takes.
    target_relative_error
        Standard error of a slope, relative to it, at which sampling stops early.
    least_rounds
        Rounds before that may happen.
    too_slow_s
        An iteration that takes longer makes the point a failure, ``too-slow``.
    memory_share
        A point that needs more than this share of a device's memory is a failure, ``too-large``.
    retries
        How often a disturbed or refused point is measured again, within `retry_share` of the worker's time.
    retry_share
        Largest share of a worker's planned time that goes into repeats.
    timeout_s
        Seconds after which the watchdog ends a stuck point.
    sustained_s
        Seconds that a ``sustained`` point runs without pause before it is sampled.
    """

    point_s: float = Field(default=0.3, gt=0)
    longest_share: float = Field(default=0.03, gt=0, le=1)
    target_relative_error: float = Field(default=0.01, gt=0)
    least_rounds: int = Field(default=5, ge=3)
    too_slow_s: float = Field(default=2.0, gt=0)
    memory_share: float = Field(default=0.4, gt=0, le=1)
    retries: int = Field(default=2, ge=0)
    retry_share: float = Field(default=0.3, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)
    sustained_s: float = Field(default=5.0, gt=0)


class ProbeSweep(_Strict):
    """One probe in a suite.

    Attributes
    ----------
    name
        Probe, by its entry point.
    sweep
        What the probe's `configurations` takes.
    scopes
        Scopes, where they differ from the suite's.
    sentinel
        Whether these points are repeated in every campaign, so that campaigns can be compared.
    conditions
        Each configuration is measured under each of them. ``sustained``: after `Budget.sustained_s` of the same work;
        ``cold``: one iteration after the caches were flushed (see `bayesperf.measure.cold`).
    role
        ``heldout``: never fitted, whatever the probe is for; ``fit`` likewise. None: as the probe.
    """

    name: str
    sweep: dict[str, Any]
    scopes: list[Scope] | None = None
    sentinel: bool = False
    conditions: list[Condition] = Field(default=["hot+burst"], min_length=1)
    role: Literal["fit", "heldout"] | None = None


class Kind(_Strict):
    """A probe and a sweep: the victims, or the aggressors, of a contention experiment."""

    name: str
    sweep: dict[str, Any]


class ContentionSweep(_Strict):
    """Victims, alone and beside aggressors.

    Attributes
    ----------
    victim
        Its configurations are measured.
    aggressors
        Each of their configurations runs beside each victim, on one device each.
    n
        How many of an aggressor run; 0 is the victim alone, in the same kind of worker.
    mode
        ``processes`` (aggressors in processes of their own), ``threads`` (of the victim's process), ``pinned``
        (processes, and each on processors of its own as far as there are enough; Linux only), ``one-processor``
        (processes, all on the victim's processors; Linux only).
    together
        All aggressors at once, `n` of each, in place of one kind after the other.
    place
        Accelerators only: aggressors on the ``same`` device as the victim, or on the ``next`` ones.
    scopes
        Devices of the victim.
    sentinel
        As for probes.
    role
        ``heldout``: never fitted, whatever the victim's probe is for; ``fit`` likewise. None: as the probe.
    """

    victim: Kind
    aggressors: list[Kind] = Field(min_length=1)
    n: list[int] = Field(default=[0, 1], min_length=1)
    mode: list[Literal["processes", "threads", "pinned", "one-processor"]] = Field(default=["processes"], min_length=1)
    together: bool = False
    place: Literal["same", "next"] = "same"
    scopes: list[Scope] = Field(default=["one"], min_length=1)
    sentinel: bool = False
    role: Literal["fit", "heldout"] | None = None

    @field_validator("n")
    @classmethod
    def _counts(cls, value: list[int]) -> list[int]:
        if min(value) < 0:
            raise ValueError("must be whole numbers of at least 0")
        return value


class PlatformOverride(_Strict):
    """What differs on one platform (``cpu``, ``gpu``, ``tpu``)."""

    processes: int | None = Field(default=None, ge=1)
    scopes: list[Scope] | None = None
    budget: Budget | None = None
    probe: list[ProbeSweep] | None = None
    contention: list[ContentionSweep] | None = None
    identifies: list[Quantity] | None = None


class Suite(_Strict):
    """A validated suite.

    Attributes
    ----------
    name
        From the file name.
    description
        One line.
    processes
        Fresh processes per point.
    scopes
        ``one`` device, ``all`` devices of the host.
    budget
        Time per point.
    identifies
        What its points suffice to learn.
    probe
        Probes and sweeps; where one name stands in several entries, each adds points.
    contention
        Victims and aggressors.
    platform
        Overrides by platform; its lists replace the suite's.
    """

    name: str
    description: str
    processes: int = Field(default=2, ge=1)
    scopes: list[Scope] = Field(default=["all"], min_length=1)
    budget: Budget = Budget()
    identifies: list[Quantity] = []
    probe: list[ProbeSweep] = []
    contention: list[ContentionSweep] = []
    platform: dict[Literal["cpu", "gpu", "tpu"], PlatformOverride] = Field(default_factory=dict)

    @field_validator("description")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if "\n" in value.strip():
            raise ValueError("must be one line")
        return value.strip()

    @model_validator(mode="after")
    def _something_to_measure(self) -> Suite:
        if not self.probe and not self.contention:
            raise ValueError("has neither a [[probe]] nor a [[contention]]: nothing to measure")
        return self

    def on(self, platform: str) -> Suite:
        """The suite as it is on a platform, its overrides applied; ``gpu`` ones serve other accelerators too."""
        overrides = {str(k): v for k, v in self.platform.items()}
        override = overrides.get(platform, overrides.get("gpu") if platform != "cpu" else None)
        if override is None:
            return self.model_copy(update={"platform": {}})
        given = {name: getattr(override, name) for name in PlatformOverride.model_fields}
        return self.model_copy(update={"platform": {}, **{k: v for k, v in given.items() if v is not None}})


def _folder() -> Path:
    return Path(str(resources.files("bayesperf.probes") / "suites"))


def available_suites() -> dict[str, str]:
    """Names of the installed suites, shortest first as far as known, and what each is in one line."""
    suites = {path.stem: tomllib.loads(path.read_text()).get("description", "") for path in _folder().glob("*.toml")}
    order = ["tiny", "quick", "standard", "full", "contention", "collectives"]
    return dict(sorted(suites.items(), key=lambda item: (order.index(item[0]) if item[0] in order else 99, item[0])))


def load_suite(name_or_path: str | Path) -> Suite:
    """Load a suite by name, or from a TOML file of one's own.

    Raises
    ------
    UnknownNameError
        No suite has that name; the message lists those that exist, nearest first.
    InputError
        The file does not exist, is no TOML, or does not describe a suite; the message names the key.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        names = available_suites()
        if str(name_or_path) not in names:
            raise UnknownNameError(
                "suite", str(name_or_path), names, hint="A suite of your own is given as the path of its .toml file"
            )
        path = _folder() / f"{name_or_path}.toml"
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from error
    try:
        return Suite.model_validate({"name": path.stem, **content})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "suite"
        raise InputError(f"{path}: {where}: {first['msg']}") from error
