"""Workload-level kernels, held out: no model is fitted to them, predictions are compared with them.

Their flops are formulas of the mathematics, their bytes what a perfectly fused kernel must move: inputs once and
outputs once, nothing between. What a compiler moves beyond that is the model's to predict, by regime.
"""
