"""What a performance model is: the contract between the catalogue in ``models/`` and the engine.

A model turns a measurement table into coded observations, those into a PyMC model, and posterior draws into
predictions for workloads it may never have seen. The engine samples, checks, stores and reports; it knows no
model by name. Third parties register theirs under the entry-point group ``bayesperf.models``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.errors import InputError

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["LIMITS", "Draws", "Floats", "PerformanceModel", "Predicted", "Prepared", "Quantity", "Request", "Updated"]

Floats = npt.NDArray[np.float64]
Draws = Mapping[str, Floats]
"""Posterior (or prior) draws by variable name; first axis is the draw, the rest the variable's own dims."""

LIMITS = ("compute", "memory", "communication", "overhead", "interference")
"""What may bound a workload; the names of `Prediction.limits` and of the ``p_*`` columns."""


@dataclass(frozen=True, slots=True)
class Request:
    """For which circumstances to predict.

    Parameters
    ----------
    campaign
        Name of a measured campaign, or None for one that was not measured.
    stack
        Name of a software stack, or None for the one that was measured.
    effect
        What an unmeasured campaign does: ``fresh`` draws its effect, ``mean`` is the mean over campaigns, ``none``
        leaves the parameters as the table has them.
    own
        Each workload in the campaign and stack that its own row names, as validation does. With ``fresh``, none of
        them counts as measured, and the rows of one campaign share its effect.
    """

    campaign: str | None = None
    stack: str | None = None
    effect: Literal["fresh", "mean", "none"] = "fresh"
    own: bool = False


@dataclass(frozen=True)
class Predicted:
    """Predictive draws of log time, in the parts that prediction and validation need.

    Parameters
    ----------
    log_time
        Log of the noiseless time, campaign effect included, shape (draw, workload), log seconds.
    misfit
        Scale of what the model gets wrong about one configuration, shared by all repeats of it, (draw, workload).
    repeat
        Scale of the difference between repeats (fresh processes) of one configuration, (draw, workload).
    tail
        Degrees of freedom of the Student-t that both scales belong to, (draw,).
    terms
        Log time that each limit alone would take, by name in `LIMITS`, each (draw, workload); absent limits
        are left out.
    shares
        Sensitivity of log time to the log of each term, by name in `LIMITS`, each (draw, workload); they sum to 1.
    notes
        What the reader must know, such as an assumed campaign spread.
    """

    log_time: Floats
    misfit: Floats
    repeat: Floats
    tail: Floats
    terms: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Quantity:
    """A named parameter that means something to a reader, as draws.

    Parameters
    ----------
    name
        Stable slug, such as ``compute_rate``.
    target
        Whose it is.
    label
        Words for people, such as ``matmul float32``.
    unit
        SI unit: ``FLOP/s``, ``B/s``, ``s`` or ``1``.
    draws
        One value per draw, shape (draw,), in `unit`.
    rows
        Positions of the fitted observations it rests on.
    """

    name: str
    target: str
    label: str
    unit: str
    draws: Floats
    rows: npt.NDArray[np.intp]


class Prepared(Protocol):
    """One kind of workload on one target, ready to be predicted again and again at other sizes.

    `code` is NumPy and quick; `predict` consists of operations that JAX can trace and compile.
    """

    @property
    def parameters(self) -> Any:
        """Draws of what `predict` needs: a tree of arrays, first axis the draw."""

    @property
    def tail(self) -> Floats:
        """Degrees of freedom of the noise, (draw,)."""

    @property
    def notes(self) -> Sequence[str]:
        """What the reader must know, as in `Predicted`."""

    def code(self, sizes: Mapping[str, Floats]) -> Any:
        """Code workloads given by their numeric columns, (row,) each: a tree of arrays whose first axis is the row."""

    def predict(self, parameters: Any, coded: Any) -> tuple[Any, Any, Any]:
        """Log time, scale of misfit and scale of repeats as in `Predicted`, (draw, row) each, from coded rows."""


@dataclass(frozen=True)
class Updated:
    """A fit conditioned on further rows.

    Parameters
    ----------
    encoded
        Coding of the old rows and the new, as `PerformanceModel.extend` gives it.
    posterior, prior
        Draws of every variable, new members behind the old, (draw, ...).
    coords
        Labels of every dim.
    dims
        Dims of variables that the fit did not have.
    survivors
        Effective number of the fit's draws that the new rows left.
    accepted
        Share of the last moves that were accepted.
    carried_over
        Largest rank correlation of a parameter's draws before and after the last moves.
    """

    encoded: Any
    posterior: Draws
    prior: Draws
    coords: Mapping[str, Sequence[Any]]
    dims: Mapping[str, tuple[str, ...]]
    survivors: float
    accepted: float
    carried_over: float


class PerformanceModel(ABC):
    """A hierarchical model of execution times. Implementations are stateless: all state is in `encode`'s result."""

    name: ClassVar[str]
    version: ClassVar[str]
    predicts_corunners: ClassVar[bool] = False
    """Whether rows that ran beside co-runners are its business; validation leaves them out otherwise."""

    @abstractmethod
    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Any:
        """Code a checked measurement table; must be deterministic, as loading a profile repeats it."""

    @abstractmethod
    def observations(self, encoded: Any) -> pd.DataFrame:
        """Return one row per likelihood term with ``measurement_ids`` (list), ``log_time``, ``target`` and ``op``."""

    @abstractmethod
    def build(self, encoded: Any) -> pm.Model:
        """Build the PyMC model; its observed variable carries the dim ``observation``."""

    def factors(self, encoded: Any, built: pm.Model) -> Sequence[pm.Model]:
        """Models of parts of the parameters that are independent given the data, sampled one by one.

        The posterior of `built` is their product, and their variables are named as its own. One, as here, unless a
        model knows better.
        """
        return [built]

    @abstractmethod
    def predict(
        self,
        encoded: Any,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """Predict workloads that carry a ``target`` each.

        Raises
        ------
        UnknownNameError
            A target that was neither measured nor has a spec sheet, or an unknown campaign.
        """

    def prepare(
        self,
        encoded: Any,
        draws: Draws,
        workload: Mapping[str, Any],
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Prepared | None:
        """Prepare predictions of workloads like `workload` (its target, its texts) at other sizes.

        None, as here, where a model has no prepared form; everything else of a profile works without one.
        """
        return None

    def extend(self, encoded: Any, table: pd.DataFrame, targets: pd.DataFrame | None) -> Any:
        """Code further rows behind those of `encoded`, whose own codes stay; deterministic, as `encode`."""
        raise InputError(f"model {self.name!r} cannot be updated; fit the old and the new rows together")

    def update(
        self,
        encoded: Any,
        posterior: Draws,
        prior: Draws,
        table: pd.DataFrame,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> Updated:
        """Condition draws on further rows; `progress` is called with the share of their weight that is reached.

        Raises
        ------
        InputError
            The model cannot be updated, as here.
        """
        raise InputError(f"model {self.name!r} cannot be updated; fit the old and the new rows together")

    @abstractmethod
    def quantities(self, encoded: Any, draws: Draws) -> list[Quantity]:
        """Return the parameters that a report names, computed alike from posterior and from prior draws."""

    @abstractmethod
    def caveats(self, encoded: Any) -> list[str]:
        """Return what this model assumes of this table and the reader must know, in plain sentences."""
