"""Priors of the roofline model, each with its reason. Scales are on the natural-log axis unless said."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRIORS", "Priors"]


@dataclass(frozen=True)
class Priors:
    """Prior locations and scales.

    Pairs are (location, scale) of a normal distribution on the log of the quantity.
    """

    scale_flops: tuple[float, float] = (27.6, 2.5)
    """Compute scale of a target without a spec sheet: 1e12 FLOP/s, a 90 % range of 1.6e10 to 6e13 and beyond that
    by the tails: from one CPU core to a large accelerator."""

    unit_spread: float = 1.0
    """How far a matrix unit of one dtype may lie from the target's scale times the unit's
    typical ratio, when its peak is unknown: a factor of 2.7 either way."""

    vector_balance: float = 2.5
    """Log of what a vector unit computes on a byte of main memory's bandwidth: 12 FLOP. On 52 spec sheets, float32
    peak over bandwidth has a mean log of 3.3 (27 FLOP), standard deviation 0.67; attained shares of both are below."""

    vector_share: float = 0.6
    """Weight of that against the target's scale where a vector unit's peak is unknown: the inverse of its variance."""

    vector_spread: float = 0.65
    """Spread of a vector unit of unknown peak around both together. Without the first, any copy that also computes
    might as well be bound by computing."""

    function_rate: float = -2.3
    """Log of the values of a function such as exp that a unit gives for each of its multiply-adds' FLOP: a tenth.
    Special function units of GPUs give a quarter of the lanes' results, and a multiply-add counts two; elsewhere a
    function is a dozen instructions or more. Its spread is `unit_spread`."""

    efficiency_matrix: tuple[float, float] = (-0.6, 0.2)
    """Share of the spec-sheet peak that matrix operations attain on average over targets: 55 % (39-76 %). What of
    the prior exceeds the peak, `bayesperf.checks.prior_above_peak` says: room for a wrong sheet."""

    efficiency_vector: tuple[float, float] = (-1.0, 0.5)
    """The same for vector operations: 37 % (16-84 %); their FLOP formulas count less of the real work."""

    efficiency_spread: float = 0.2
    """Spread of that share between targets; the median of its prior where three targets let it be learned."""

    operation_spread: float = 0.3
    """Spread between operation families on one unit, in rate."""

    unseen_operation: tuple[float, float] = (-0.5, 0.5)
    """Operation families without a row in the table, in rate and in bandwidth: probes are the best case of their
    kind, other families make more passes over their data or leave units idle. Slower by 40 %, a factor of 2.3 either
    way (90 %), on top of the spread between the families measured. Assumed; wide, since the held-out families of our
    own runs tend to be slower than the probes' rates would have them."""

    unseen_overhead: tuple[float, float] = (0.7, 1.0)
    """The same for overhead: such families are often several kernels. Twice, a factor of 5 either way."""

    cell_spread: float = 0.15
    """Spread of one operation on one target around the sum of both effects, in rate."""

    main_bandwidth: tuple[float, float] = (25.3, 2.5)
    """Main-memory bandwidth without a spec sheet: 1e11 B/s, 90 % range 1.6e9 to 6e12."""

    main_efficiency: tuple[float, float] = (-0.25, 0.2)
    """Attained share of the spec-sheet bandwidth: 78 % (56-108 %); the top leaves room for a wrong sheet."""

    memory_operation_spread: float = 0.2
    """Spread between operation families in attained bandwidth."""

    memory_cell_spread: float = 0.1
    """Spread of one operation on one target in attained bandwidth."""

    level_drop: float = 0.15
    """Mean drop of bandwidth per doubling of the working set inside the caches (exponential): eight doublings
    lose a factor of about 3.3. The sum of exponentials does not care whether a drop is sharp or gradual."""

    level_warp: float = 0.7
    """Spread of the log exponent that says where in a gap between two measured working sets bandwidth falls."""

    level_drop_beyond: float = 0.01
    """The same beyond twice the last cache that a spec sheet names: nothing should happen there."""

    launch_overhead: tuple[float, float] = (-12.2, 2.5)
    """One launch from the host: 5 us, 90 % range 0.08 to 300 us. Launches over a network take longer still; with less
    room, one such row would pass for an outlier."""

    chained_overhead: tuple[float, float] = (-14.5, 1.5)
    """One kernel inside a running program: 0.5 us, 90 % range 0.04 to 6 us."""

    launch_spread: float = 0.7
    """Spread between targets of one table in either, where three targets let it be learned: a factor of 3 either way.
    Else targets are as far apart as the ranges above."""

    overhead_cell_spread: float = 0.7
    """Spread of one operation's overhead around its target's."""

    sharpness: tuple[float, float] = (0.9, 0.6)
    """log(q - 1), q being the exponent of the smooth maximum: q = 3.5 (1.9 to 7.6); q = 1 would be no overlap."""

    misfit: tuple[float, float] = (-2.8, 0.7)
    """What the model gets wrong about one configuration: 6 % (2-19 %)."""

    misfit_cell_spread: float = 0.5
    """Spread of the misfit between operations and targets: some families follow a roofline better than others."""

    repeat: tuple[float, float] = (-3.9, 1.0)
    """Difference between fresh processes: 2 % (0.4-10 %)."""

    repeat_cell_spread: float = 0.7
    """Spread of that difference between operations and targets."""

    campaign: tuple[float, float] = (-3.5, 0.7)
    """log tau, the common part of a campaign effect: 3 % (1-10 %). Fleets showed 1-7 % within one target, two
    NeuSight campaigns 7-10 %."""

    campaign_vector: float = 0.05
    """Half-normal scale of omega, a campaign's own effect on compute, bandwidth and overhead."""

    stack: tuple[float, float] = (-2.5, 0.5)
    """log spread of a change of software stack: 8 % (4-19 %)."""

    discrepancy: tuple[float, float] = (-2.3, 0.6)
    """log scale of the systematic error of an operation's roofline, common to all targets, and again of one target:
    10 % (4-27 %)."""

    discrepancy_length: float = 2.5
    """How far in the log of FLOP, bytes or parallelism that error carries: a factor of 12."""

    discrepancy_shape_length: float = 3.0
    """The same in the log of a shape's extents, such as rows or k: a factor of 20."""

    tail: float = 5.0
    """Degrees of freedom of the noise; fixed below `tail_rows` observations, where it trades off with its scale."""

    tail_rows: int = 100
    """From how many observations the tail is learned."""


PRIORS = Priors()
