"""What a batch is asked to do: the configuration, its keys, and what is said of a wrong one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from bayesperf.errors import InputError, nearest_first

__all__ = ["EACH", "SHIPPED", "Config", "Data", "JobSpec", "Settings", "read_config"]

EACH = "each"
"""Value of ``target``: one job for every target of the data."""

SHIPPED = "shipped"
"""Value of ``specs``: the spec sheets that come with the package."""


def _listed(value: Any) -> Any:
    """One text stands for a list of one."""
    value = [value] if isinstance(value, str | Path) else value
    return [_path(entry) for entry in value] if isinstance(value, list) else value


def _groups(value: Any) -> Any:
    """Target sets: ``"a"`` is ``[["a"]]``, ``["a", ["b", "c"]]`` is ``[["a"], ["b", "c"]]``."""
    listed = _listed(value)
    return [_listed(entry) for entry in listed] if isinstance(listed, list) else listed


def _path(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


Paths = Annotated[list[str], BeforeValidator(_listed)]
PathText = Annotated[str, BeforeValidator(_path)]


class _Strict(BaseModel):
    # TOML has types: "10" is no number, and true no count.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Settings(_Strict):
    """What ``[defaults]`` and every job may set; a job's own value comes first.

    Attributes
    ----------
    draws, tune, chains, attempts
        Of the sampling, as for `bayesperf.fit`.
    tolerance, alpha
        Of the validation: shift granted as a share of time, and family-wise error rate.
    validation
        Key ``validate``. True: held-out rows must be there; False: leave them; absent: validate where there are any.
    report
        Write the capability report.
    specs
        Spec sheets: a file, or ``"shipped"``.
    """

    draws: int | None = Field(default=None, ge=1)
    tune: int | None = Field(default=None, ge=1)
    chains: int | None = Field(default=None, ge=1)
    attempts: int | None = Field(default=None, ge=1)
    tolerance: float | None = Field(default=None, gt=0, lt=1)
    alpha: float | None = Field(default=None, gt=0, lt=1)
    validation: bool | None = Field(default=None, alias="validate")
    report: bool | None = None
    specs: PathText | None = None


class Data(_Strict):
    """One named source of measurements, ``[data.NAME]``.

    Attributes
    ----------
    tables
        Measurement tables (CSV or Parquet; ``*`` and ``?`` match several), joined before the fit.
    dataset
        Or the name of an installed data set.
    options, flagged
        Of the data set, as for `bayesperf.datasets.load`.
    heldout
        Tables to validate against; absent: the rows of `tables` whose role is ``heldout``.
    specs
        Spec sheets of this source.
    """

    tables: Paths = []
    dataset: str | None = None
    options: dict[str, Any] = {}
    flagged: Literal["keep", "drop"] = "keep"
    heldout: Paths = []
    specs: PathText | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Data:
        if bool(self.tables) == (self.dataset is not None):
            raise ValueError("give either tables = [...] or dataset = NAME")
        if self.options and self.dataset is None:
            raise ValueError("options belong to a dataset; tables have none")
        return self


class JobSpec(Settings):
    """One ``[[job]]``, which stands for every combination of its lists.

    Attributes
    ----------
    name
        Begins the names of its jobs.
    data
        Names of ``[data.NAME]``, or measurement files (``*`` and ``?`` match several): one job for each.
    model
        Installed models: one job for each.
    target
        Target sets: one job for each entry, which may itself be a list, fitted together. ``"each"``: every target on
        its own. Absent: all targets together.
    heldout
        Tables to validate against, in place of those of the data.
    profile
        Validate and report this profile against the data, in place of a fit.
    seed
        Of the sampling; derived from the batch's seed and the job's name when absent.
    """

    data: Annotated[list[str], BeforeValidator(_listed)] = Field(min_length=1)
    name: str | None = Field(default=None, min_length=1)
    model: Annotated[list[str], BeforeValidator(_listed)] = Field(default=["roofline"], min_length=1)
    target: Annotated[list[list[str]], BeforeValidator(_groups)] | None = None
    heldout: Paths = []
    profile: PathText | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**31)

    @model_validator(mode="after")
    def _fit_or_profile(self) -> JobSpec:
        fitting = {"model", "draws", "tune", "chains", "attempts", "heldout", "specs"} & self.model_fields_set
        if self.profile is not None and fitting:
            raise ValueError(f"a job with a profile fits nothing; leave out {', '.join(sorted(fitting))}")
        if self.target is not None and not (self.target and all(self.target)):
            raise ValueError("target: an empty list names no target; leave the key out to take all")
        return self


class Config(_Strict):
    """A batch.

    Attributes
    ----------
    title
        Heads the summary.
    out
        Folder to write into; absent: one beside the file, of its name.
    seed
        From which every job's seed is derived.
    defaults
        Settings of all jobs.
    data
        Named sources.
    job
        The jobs.
    """

    title: str | None = None
    out: PathText | None = None
    seed: int = Field(default=0, ge=0, lt=2**31)
    defaults: Settings = Settings()
    data: dict[str, Data] = {}
    job: list[JobSpec] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Located:
    """A configuration and where it stands.

    Parameters
    ----------
    config
        What it says.
    source
        Its name in messages.
    folder
        What its relative paths are relative to.
    stem
        Names the folder that is written where it names none; None for one that is no file.
    """

    config: Config
    source: str
    folder: Path
    stem: str | None


def read_config(config: str | Path | Mapping[str, Any]) -> Located:
    """Read a configuration, from a TOML file or a mapping of the same shape.

    Raises
    ------
    InputError
        No such file, no TOML, or a wrong key or value: names the file, the key, and the nearest known ones.
    """
    if isinstance(config, Mapping):
        return Located(_checked(dict(config), "config"), "config", Path.cwd(), None)
    path = Path(config)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from error
    return Located(_checked(content, str(path)), str(path), path.resolve().parent, path.stem)


def _checked(content: dict[str, Any], source: str) -> Config:
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        problems = [_words(dict(e)) for e in error.errors()]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError(f"{source}: {problems[0]}{more}") from error


def _words(error: Mapping[str, Any]) -> str:
    """One problem: where it is, what is wrong, what would be right."""
    location = tuple(error["loc"])
    where = _place(location)
    if error["type"] == "extra_forbidden":
        known = nearest_first(str(location[-1]), _keys_at(location[:-1]))
        return f"{where}: no such key; nearest first, there are: {', '.join(known)}"
    if error["type"] == "missing":
        known_keys = {"job": "a [[job]] with data = ...", "data": 'data = "NAME or FILE"'}
        return f"{where}: is missing; add {known_keys.get(str(location[-1]), str(location[-1]))}"
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    given = error.get("input")
    shown = f", not {given!r}" if isinstance(given, str | int | float | bool) else ""
    return f"{where}: {message}{shown}"


def _place(location: tuple[Any, ...]) -> str:
    """Where a key stands, as a reader of TOML finds it."""
    match location:
        case ("job", int(at), *rest):
            head = f"[[job]] number {at + 1}"
        case ("data", str(name), *rest):
            head = f"[data.{name}]"
        case ("defaults", *rest):
            head = "[defaults]"
        case _:
            head, rest = "", list(location)
    key = ".".join(str(part) for part in rest)
    return ", ".join(part for part in (head, f"key {key}" if key else "") if part) or "top level"


def _keys_at(location: tuple[Any, ...]) -> list[str]:
    match location:
        case ("job", int(), *_):
            model: type[BaseModel] = JobSpec
        case ("data", str(), *_):
            model = Data
        case ("defaults", *_):
            model = Settings
        case _:
            model = Config
    return [field.alias or name for name, field in model.model_fields.items()]
