"""Labels of the levels of a hierarchy, and which campaigns they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

__all__ = ["Campaigned", "Index", "Label", "Labels"]

Index = npt.NDArray[np.intp]
Label = tuple[str, ...]


class Labels:
    """Ordered labels of every level; codes are positions. Extending a copy leaves the old codes valid.

    A model names its levels in a subclass; one called ``campaign`` has labels (target, campaign, stack).
    """

    levels: ClassVar[tuple[str, ...]] = ()

    def __init__(self, base: Self | None = None):
        self._codes: dict[str, dict[Label, int]] = {k: dict(base._codes[k]) if base else {} for k in self.levels}

    def add(self, level: str, labels: Iterable[Label]) -> Index:
        """Return the code of each label, adding those not seen before."""
        known = self._codes[level]
        return np.fromiter((known.setdefault(label, len(known)) for label in labels), dtype=np.intp)

    def of(self, level: str) -> list[Label]:
        """Return the labels of a level in code order."""
        return list(self._codes[level])

    def names(self, level: str) -> list[str]:
        """Return the labels of a level as coordinates: their parts joined by ``|``."""
        return ["|".join(label) for label in self._codes[level]]

    def find(self, level: str, labels: Iterable[Label]) -> Index:
        """Return the code of each label; -1 where it does not exist."""
        known = self._codes[level]
        return np.fromiter((known.get(label, -1) for label in labels), dtype=np.intp)

    def parents(self, child: str, parent: str, key: slice | tuple[int, ...]) -> Index:
        """Code, for each label of `child`, of the `parent` label made of its parts `key`."""
        parts = [label[key] if isinstance(key, slice) else tuple(label[i] for i in key) for label in self.of(child)]
        return self.find(parent, parts)


class Campaigned:
    """What a coded table knows of its campaigns."""

    labels: Labels

    @property
    def campaigns_of(self) -> dict[str, list[tuple[str, str]]]:
        """Pairs (campaign, stack) seen of each target."""
        found: dict[str, list[tuple[str, str]]] = {}
        for target, campaign, stack in self.labels.of("campaign"):
            found.setdefault(target, []).append((campaign, stack))
        return found

    @property
    def learns_campaigns(self) -> bool:
        """Whether any target was measured in more than one campaign, so that their spread can be learned."""
        return any(len(seen) > 1 for seen in self.campaigns_of.values())
