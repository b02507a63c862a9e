"""Parameters that a report names, in units that people know, from posterior or prior draws alike."""

from __future__ import annotations

import numpy as np

from bayesperf.model import Draws, Quantity
from bayesperf.models.communication.coded import Encoded, Label
from bayesperf.models.communication.hierarchy import members_of

__all__ = ["quantities"]


def quantities(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """See `bayesperf.model.PerformanceModel.quantities`."""
    found = [*_cells(encoded, draws), *_protocols(encoded, draws), *_fabrics(encoded, draws), *_noise(encoded, draws)]
    everything = np.arange(len(encoded.log_time))
    if "campaign_spread" in draws:
        spread = np.asarray(draws["campaign_spread"], dtype=float).reshape(-1)
        found.append(Quantity("campaign_spread", "", "spread between campaigns", "1", spread, everything))
    return found


def _named(label: Label) -> str:
    """An operation, with its element type where that matters."""
    return " ".join(filter(None, label[1:3]))


def _cells(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """Bus bandwidth for large messages and latency, of every collective at every number of ranks that shows them."""
    members, found = members_of(encoded.labels, encoded.anchor), []
    for code, label in enumerate(encoded.labels.of("cell")):
        words, rows = f"{_named(label)}, {label[3]} ranks", np.flatnonzero(encoded.codes.cell == code)
        if encoded.informed["byte"][code] and float(label[3]) > 1:
            rate = np.exp(members.log_factor[code] - draws["byte"][:, code])
            found.append(Quantity("bus_bandwidth", label[0], words, "B/s", rate, rows))
        if encoded.informed["latency"][code]:
            found.append(Quantity("message_latency", label[0], words, "s", np.exp(draws["latency"][:, code]), rows))
    return found


def _protocols(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """Size from which the protocol for large messages is the faster one, at the fewest ranks that were measured."""
    cells, found = encoded.labels.of("cell"), []
    for code in np.flatnonzero(encoded.informed["protocol"]):
        label = encoded.labels.of("pair")[code]
        cell = min((at for at, other in enumerate(cells) if other[:3] == label), key=lambda at: float(cells[at][3]))
        size = (
            draws["handshake"][:, code] - draws["flags"][:, code] + draws["latency"][:, cell] - draws["byte"][:, cell]
        )
        words = f"{_named(label)}, {cells[cell][3]} ranks"
        rows = np.flatnonzero(encoded.codes.pair == code)
        found.append(Quantity("protocol_switch", label[0], words, "B", np.exp(size), rows))
    return found


def _fabrics(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """How a target's link keeps up with more ranks, where more than one number was measured."""
    found = []
    for code, (target,) in enumerate(encoded.labels.of("target")):
        ranks = {label[3] for label in encoded.labels.of("cell") if label[0] == target}
        if len(ranks) > 1:
            rows = np.flatnonzero(encoded.codes.target == code)
            doubled = np.exp(-np.log(2.0) * draws["growth"][:, code])
            found.append(Quantity("link_scaling", target, "link rate when ranks double", "1", doubled, rows))
    return found


def _noise(encoded: Encoded, draws: Draws) -> list[Quantity]:
    found = []
    for name, words in (("misfit", "misfit of"), ("repeat", "repeatability of")):
        if name in draws:
            for code in np.flatnonzero(encoded.informed[name]):
                label = encoded.labels.of("pair")[code]
                rows = np.flatnonzero(encoded.codes.pair == code)
                found.append(Quantity(name, label[0], f"{words} {_named(label)}", "1", draws[name][:, code], rows))
    return found
