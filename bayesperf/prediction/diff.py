"""Two profiles of one target (before and after a driver update, this month and last): what moved, and is that sure?

Parameters are matched by name. Their posteriors are independent, so a change is the difference of two independent
draws of the parameter's log. A parameter of a target that was measured in one campaign is that *as in* its campaign:
what campaigns do anyway is no change, so the model's spread between campaigns is added, once for each side that saw
only one. With one campaign on each side, small changes therefore stay ambiguous; more campaigns decide them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, UnconvergedError, UnknownNameError, check_between, check_counts
from bayesperf.inference.diagnostics import warnings_of
from bayesperf.model import Floats, Quantity, Request

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["CHANGE", "CONFIDENCE", "Difference", "diff", "verdict_of"]

CHANGE, CONFIDENCE = 0.05, 0.95

Key = tuple[str, str, str]

WITHOUT_CAMPAIGN = "1"
"""Unit of spreads and exponents: they are not per campaign."""


@dataclass(frozen=True)
class Difference:
    """What differs between two profiles.

    Parameters
    ----------
    parameters
        One row per parameter of both profiles, the surest changes first: parameter, target, label, unit, old, new
        (posterior medians), ratio, ratio_lower, ratio_upper (new over old, 90 % interval, what campaigns do included),
        p_changed (probability of a change beyond `change`, either way), p_higher, p_lower, campaign_spread (standard
        deviation that campaigns add to the log ratio), verdict (``higher``, ``lower``, ``unchanged``, ``ambiguous``, or
        ``not learned`` where one table did not teach the parameter), advice.
    only_old, only_new
        Parameters without a counterpart, as ``target: label (parameter)``.
    change, confidence
        Relative change asked for, and probability from which a verdict is given.
    targets
        Targets that both profiles have.
    notes
        What was assumed.
    """

    parameters: pd.DataFrame
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    change: float
    confidence: float
    targets: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def any_changed(self) -> bool:
        """Whether any parameter surely moved beyond `change`."""
        return bool(self.parameters["verdict"].isin(["higher", "lower"]).any())

    def to_html(self, path: str | Path) -> None:
        """Write the difference as one self-contained page, atomically."""
        from bayesperf.report.difference import difference_page
        from bayesperf.report.page import write_page

        write_page(Path(path), difference_page(self))


def diff(
    old: Profile,
    new: Profile,
    *,
    change: float = CHANGE,
    confidence: float = CONFIDENCE,
    target: str | None = None,
    seed: int = 0,
    allow_unconverged: bool = False,
) -> Difference:
    """Say which parameters differ between two profiles of one target.

    Parameters
    ----------
    old, new
        Profiles fitted with the same model; every target that both have is compared.
    change
        Relative change that matters, such as 0.05: P(change > 5 %).
    confidence
        Probability from which a parameter is said to have moved, or not to have.
    target
        Compare this one only.
    seed
        The same seed gives the same probabilities.
    allow_unconverged
        Compare although a diagnostics gate failed.

    Raises
    ------
    InputError
        Different models, no common target or parameter, or a change or confidence that makes no sense.
    UnconvergedError
        A gate failed, and nobody opted in.
    """
    for each in (old, new):
        if not hasattr(each, "gate"):
            raise InputError(f"diff takes two profiles, not a {type(each).__name__}: read files with load_profile")
    check_between(0, 10, change=change)
    check_between(0.5, 1, confidence=confidence)
    check_counts(0, seed=seed)
    for name, profile in (("old", old), ("new", new)):
        if not (profile.converged or allow_unconverged):
            reasons = "; ".join(warnings_of([check for check in profile.gate if not check.passed]))
            raise UnconvergedError(
                f"the {name} profile is unconverged: {reasons}. Pass allow_unconverged=True to go on"
            )
    targets = _common_targets(old, new, target)
    sides = [_Side(profile, targets, seed) for profile in (old, new)]
    shared = [key for key in sides[0].quantities if key in sides[1].quantities]
    if not shared:
        raise InputError("the two profiles have no parameter in common: measure the same suite twice")
    rng = np.random.default_rng(seed)
    same = {name for name in targets if _same_campaign(old, new, name)}
    rows = [_row(key, sides, key[1] in same, change, confidence, rng) for key in shared]
    table = pd.DataFrame(rows).sort_values("p_changed", ascending=False, kind="stable", ignore_index=True)
    only = [tuple(_words(key) for key in a.quantities if key not in b.quantities) for a, b in (sides, sides[::-1])]
    notes = [f"{name}: both profiles are of one campaign, whose effect cancels" for name in sorted(same)]
    notes += list(dict.fromkeys(note for side in sides for note in side.notes))
    return Difference(table, only[0], only[1], change, confidence, tuple(targets), tuple(notes))


def _common_targets(old: Profile, new: Profile, target: str | None) -> list[str]:
    if (old.model_name, old.model.version) != (new.model_name, new.model.version):
        raise InputError(
            f"the profiles were fitted with different models, {old.model_name} {old.model.version} and "
            f"{new.model_name} {new.model.version}: fit both tables with one of them"
        )
    common = [name for name in old.targets if name in new.targets]
    if target is not None:
        if target not in common:
            raise UnknownNameError("target of both profiles", target, common)
        return [target]
    if not common:
        raise InputError(
            f"the profiles have no target in common: {', '.join(old.targets)} and {', '.join(new.targets)}; "
            "diff compares two profiles of one target, compare two targets of one profile"
        )
    return common


class _Side:
    """Parameters of one profile, what was learned of them, and what campaigns add to each."""

    def __init__(self, profile: Profile, targets: list[str], seed: int):
        self._seed = seed
        self._profile = profile
        found = profile.model.quantities(profile.inference.encoded, profile.draws())
        self.quantities = {_key(q): q for q in found if q.target in targets}
        table = profile.parameters()
        names = zip(table["parameter"], table["target"], table["label"], strict=True)
        self.learned = dict(zip(names, table["learned"], strict=True))
        self.notes: tuple[str, ...] = ()
        self._effect: dict[str, Floats] = {}
        observed = profile.model.observations(profile.inference.encoded)
        rows = profile.table.set_index("measurement_id")
        self._first = rows.loc[[ids[0] for ids in observed["measurement_ids"]]].reset_index()
        self._observed_target = observed["target"].to_numpy()

    def campaign(self, quantity: Quantity) -> Floats:
        """Draws of what a campaign may add to the parameter's log, (draw,); zeros where campaigns were averaged over.

        The effect is that on the times of the rows which the parameter rests on: the difference between the mean over
        campaigns and the parameters as the table has them, as the model predicts it.
        """
        if quantity.unit == WITHOUT_CAMPAIGN or not len(quantity.rows):
            return np.zeros(len(quantity.draws))
        if quantity.target not in self._effect:
            self._effect[quantity.target] = self._campaign_effect(quantity.target)
        position = np.cumsum(self._observed_target == quantity.target) - 1
        return np.asarray(self._effect[quantity.target][:, position[quantity.rows]].mean(axis=1))

    def _campaign_effect(self, target: str) -> Floats:
        """Effect of being in one campaign on the log time of each of the target's observations, (draw, observation)."""
        inference, draws = self._profile.inference, self._profile.draws()
        rows = self._first[self._observed_target == target].drop(columns=["time_s", "campaign"], errors="ignore")
        workloads = rows.reset_index(drop=True)
        sheets = self._profile.spec_sheets
        # The same stream of random numbers: what differs is the effect alone.
        within, without = (
            inference.model.predict(
                inference.encoded, draws, workloads, request, sheets, np.random.default_rng(self._seed)
            ).log_time
            for request in (Request(effect="mean"), Request(effect="none"))
        )
        effect = within - without
        if (effect != 0).any():
            note = f"{target}: spread between campaigns assumed, one campaign seen"
            self.notes = tuple(dict.fromkeys([*self.notes, note]))
        return np.asarray(effect)


def _key(quantity: Quantity) -> Key:
    return quantity.name, quantity.target, quantity.label


def _words(key: Key) -> str:
    return f"{key[1]}: {key[2]} ({key[0]})"


def _same_campaign(old: Profile, new: Profile, target: str) -> bool:
    """Whether both profiles saw a target in one and the same named campaign and software stack."""
    seen = []
    for profile in (old, new):
        rows = profile.table[profile.table["target"] == target]
        columns = [rows[name].fillna("") if name in rows else [""] * len(rows) for name in ("campaign", "stack")]
        seen.append(set(zip(*columns, strict=True)))
    return len(seen[0]) == 1 and seen[0] == seen[1] and next(iter(seen[0]))[0] != ""


def _row(
    key: Key, sides: list[_Side], same_campaign: bool, change: float, confidence: float, rng: np.random.Generator
) -> dict[str, Any]:
    before, after = (side.quantities[key] for side in sides)
    n = max(len(before.draws), len(after.draws))
    # Independent posteriors: any pairing of their draws is a draw of both.
    chosen = [rng.permutation(np.resize(np.arange(len(q.draws)), n)) for q in (before, after)]
    logs = [np.log(q.draws)[at] for q, at in zip((before, after), chosen, strict=True)]
    campaign = np.zeros(n)
    if not same_campaign:
        for side, q, at in zip(sides, (before, after), chosen, strict=True):
            campaign += side.campaign(q)[at]
    ratio = logs[1] - logs[0] + campaign
    low, middle, high = np.exp(np.quantile(ratio, [0.05, 0.5, 0.95]))
    beyond = np.log1p(change)
    higher, lower = float(np.mean(ratio > beyond)), float(np.mean(ratio < -beyond))
    learned = all(bool(side.learned.get(key, False)) for side in sides)
    spread, noise = float(campaign.std()), float((logs[1] - logs[0]).std())
    verdict = verdict_of(higher, lower, confidence) if learned else "not learned"
    return {
        "parameter": key[0],
        "target": key[1],
        "label": key[2],
        "unit": before.unit,
        "old": float(np.median(before.draws)),
        "new": float(np.median(after.draws)),
        "ratio": middle,
        "ratio_lower": low,
        "ratio_upper": high,
        "p_changed": higher + lower,
        "p_higher": higher,
        "p_lower": lower,
        "campaign_spread": spread,
        "verdict": verdict,
        "advice": _advice(verdict, spread, noise),
    }


def verdict_of(higher: float, lower: float, confidence: float) -> str:
    """Name the verdict from the probabilities of a change beyond what matters, either way."""
    if higher >= confidence:
        return "higher"
    if lower >= confidence:
        return "lower"
    return "unchanged" if higher + lower <= 1 - confidence else "ambiguous"


def _advice(verdict: str, campaign: float, posterior: float) -> str:
    if verdict == "not learned":
        return "measure the points that inform it, in both: here the prior speaks"
    if verdict != "ambiguous":
        return ""
    if campaign > posterior:
        return "more campaigns (days) of each side: what campaigns differ by hides a change of this size"
    return "more points of this kind on each side"
