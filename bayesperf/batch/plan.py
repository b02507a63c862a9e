"""From a configuration to jobs: every combination of its lists, each with a name, a seed and a key of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from bayesperf import __version__, plugins
from bayesperf.batch.config import EACH, Config, Data, JobSpec, Located
from bayesperf.batch.inputs import Library, Source, matching
from bayesperf.errors import BayesperfError, InputError, UnknownNameError

__all__ = ["BUILT_IN", "Job", "jobs_of", "key_of"]

BUILT_IN: dict[str, Any] = {
    "draws": 1000,
    "tune": 1000,
    "chains": 4,
    "attempts": 2,
    "tolerance": 0.1,
    "alpha": 0.05,
    "validation": None,
    "report": True,
}
"""Settings where neither the job nor ``[defaults]`` says otherwise."""

SAMPLING, JUDGING = ("draws", "tune", "chains", "attempts"), ("tolerance", "alpha")
LONGEST = 80
"""Characters of a folder's name; longer ones are cut, and told apart by a hash."""


@dataclass(frozen=True, slots=True)
class Job:
    """One fit (or one profile), its validation and its report.

    Parameters
    ----------
    name
        Unique in the batch.
    id
        Name of its folder: the name as a slug.
    task
        What `bayesperf.batch.job.run_job` is given: plain values.
    key
        Hash of what its outputs depend on: settings, contents of its inputs, versions.
    problem
        Why it cannot run, where that is known before it starts.
    """

    name: str
    id: str
    task: dict[str, Any]
    key: str
    problem: str | None


def jobs_of(located: Located, copies: Path, *, seed: int | None = None) -> list[Job]:
    """Expand a configuration.

    Parameters
    ----------
    located
        From `read_config`.
    copies
        Folder for copies of data sets.
    seed
        In place of the configuration's.

    Raises
    ------
    InputError
        An unknown data source, model or target; a file that does not exist; two jobs of one name.
    """
    library = Library(located.folder, copies)
    config = located.config
    seed = config.seed if seed is None else seed
    jobs: dict[str, Job] = {}
    names: dict[str, str] = {}
    for at, spec in enumerate(config.job, 1):
        where = f"{located.source}: [[job]] number {at}"
        for job in _expand(spec, config, library, where, seed):
            if job.id in jobs:
                raise InputError(
                    f"{where}: its job {job.name!r} and {names[job.id]} have one name; give one of them a name = ..."
                )
            jobs[job.id] = job
            names[job.id] = f"{job.name!r} of [[job]] number {at}"
    return list(jobs.values())


def _expand(spec: JobSpec, config: Config, library: Library, where: str, seed: int) -> Iterator[Job]:
    for model in spec.model:
        if model not in plugins.available("model"):
            raise InputError(f"{where}, key model: {UnknownNameError('model', model, plugins.available('model'))}")
    sources = [source for entry in spec.data for source in _sources(entry, config, library, where)]
    for source in sources:
        for model in spec.model:
            for targets, problem in _target_sets(spec, source, library, where):
                name = _name(spec, source, model, targets, len(sources))
                task = _task(name, spec, config, source, model, targets, library, where, seed)
                yield Job(name, _folder_name(name), task, key_of(task), source.problem or problem)


def _sources(entry: str, config: Config, library: Library, where: str) -> list[Source]:
    """A named source, or one source for each file that a path or pattern matches."""
    if entry in config.data:
        return [library.source(entry, config.data[entry], f"{where}, [data.{entry}]")]
    looks_like_files = Path(entry).suffix in (".csv", ".parquet") or any(c in entry for c in "/*?[")
    if not looks_like_files:
        unknown = UnknownNameError("data source", entry, config.data, hint="A file is named with its ending")
        raise InputError(f"{where}, key data: {unknown}")
    found = []
    for path in matching(entry, library.folder, f"{where}, key data"):
        label = path.relative_to(library.folder) if path.is_relative_to(library.folder) else path
        data = Data(tables=[str(path)])
        found.append(library.source(str(label.with_suffix("")).strip("/"), data, f"{where}, key data"))
    return found


def _target_sets(
    spec: JobSpec, source: Source, library: Library, where: str
) -> list[tuple[tuple[str, ...] | None, str | None]]:
    """Target sets of a source, each with the problem of its job, if there is one."""
    if spec.target is None:
        return [(None, None)]
    asked = [tuple(group) for group in spec.target]
    each = asked == [(EACH,)]
    if source.problem is not None:
        return [(None if each else group, source.problem) for group in asked]
    try:
        known = library.targets(source.tables, spec.profile is None)
    except BayesperfError as error:
        # A broken table is the trouble of its own jobs; which targets it would have had nobody can say.
        problem = str(error).replace(f"{library.folder}/", "")
        return [(None if each else group, problem) for group in asked]
    if each:
        # Nothing at all must not pass for done.
        return [((name,), None) for name in known] or [(None, "no target has rows that can be used")]
    for name in (name for group in asked for name in group):
        if name not in known:
            unknown = UnknownNameError("target with rows to use", name, known)
            raise InputError(f"{where}, key target, data {source.label!r}: {unknown}")
    return [(group, None) for group in asked]


def _name(spec: JobSpec, source: Source, model: str, targets: tuple[str, ...] | None, n_sources: int) -> str:
    """Parts that tell a job from the others of its batch; an unnamed one says all of them."""
    parts = [spec.name] if spec.name else []
    if not spec.name or n_sources > 1:
        parts.append(source.label)
    if spec.profile is not None:
        parts += [] if spec.name else [Path(spec.profile).stem]
    elif not spec.name or len(spec.model) > 1:
        parts.append(model)
    if targets is not None and (not spec.name or spec.target != [list(targets)]):
        parts.append("+".join(targets))
    return " / ".join(parts)


def _folder_name(name: str) -> str:
    from bayesperf.specs import slug

    plain = slug(name).strip(".")
    if plain and len(plain) <= LONGEST:
        return plain
    # Of names without a letter that a folder may have, and of long ones.
    return f"{plain[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".strip("-")


def _task(
    name: str,
    spec: JobSpec,
    config: Config,
    source: Source,
    model: str,
    targets: tuple[str, ...] | None,
    library: Library,
    where: str,
    seed: int,
) -> dict[str, Any]:
    settings = {key: _first(getattr(spec, key), getattr(config.defaults, key), BUILT_IN[key]) for key in BUILT_IN}
    specs = library.specs(spec.specs, f"{where}, key specs") or source.specs
    specs = specs or library.specs(config.defaults.specs, "[defaults], key specs")
    heldout = library.files(spec.heldout, f"{where}, key heldout") or source.heldout
    profile = library.files([spec.profile], f"{where}, key profile")[0] if spec.profile is not None else None
    own = int.from_bytes(hashlib.sha256(f"{seed}|{name}".encode()).digest()[:4]) % 2**31
    return {
        "name": name,
        "id": _folder_name(name),
        "data": source.label,
        "model": model if profile is None else None,
        "plugin": _plugin_version(model) if profile is None else None,
        "version": __version__,
        "targets": list(targets) if targets is not None else None,
        "seed": own if spec.seed is None else spec.seed,
        "sampling": {key: settings[key] for key in SAMPLING},
        "judging": {key: settings[key] for key in JUDGING},
        "validate": settings["validation"],
        "report": settings["report"],
        "tables": [file.to_dict() for file in source.tables],
        "heldout": [file.to_dict() for file in heldout],
        "specs": None if specs is None or profile is not None else specs.to_dict(),
        "profile": None if profile is None else profile.to_dict(),
    }


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _plugin_version(model: str) -> str:
    """Which package gives the model, and which version of it."""
    points = [p for p in entry_points(group=plugins.GROUPS["model"], name=model) if p.dist is not None]
    return ", ".join(sorted(f"{p.dist.name} {p.dist.version}" for p in points if p.dist is not None))


def key_of(task: dict[str, Any]) -> str:
    """Hash of all that a job's outputs depend on; where its inputs lie is not part of it, what is in them is."""
    from bayesperf.schema import canonical

    return hashlib.sha256(canonical(_without_paths(task)).encode()).hexdigest()


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_paths(v) for k, v in value.items() if k != "path"}
    return [_without_paths(v) for v in value] if isinstance(value, list) else value
