"""Sweeps that show every op and dtype of probes that suites use only in part, or on some platforms."""

from __future__ import annotations

from typing import Any

EXAMPLES: dict[str, dict[str, Any]] = {
    "matmul": {
        "dtypes": ["float64", "float32", "bfloat16", "float16", "int8"],
        "shapes": [64, [16, 96, 64], [3, 32, 48, 16]],
    },
    "fma": {"ilp": [1, 2, 4, 8, 16, 32], "working_set_bytes": [8192]},
    "reduction": {"dtypes": ["float32", "bfloat16"], "shapes": [[24, 48]]},
    "transcendental": {"dtypes": ["float32", "bfloat16"], "working_set_bytes": [16384]},
    "conv2d": {"dtypes": ["float32", "bfloat16"], "shapes": [[2, 9, 12, 8, 16, 3], [1, 8, 8, 8, 8, 2]]},
    "prefill": {"dtypes": ["float32", "bfloat16"], "shapes": [[2, 24, 2, 16]]},
    "decode": {"dtypes": ["float32", "bfloat16"], "shapes": [[2, 16, 2, 16]]},
    "mlp_train": {"dtypes": ["float32", "bfloat16"], "shapes": [[16, 32]]},
    "conv_block": {"dtypes": ["float32", "bfloat16"], "shapes": [[1, 10, 12, 8]]},
    "rearrange": {"shapes": [[48, 64]]},
    "depthwise": {"dtypes": ["float32"], "shapes": [[1, 8, 8, 8, 3]]},
    "embedding": {"dtypes": ["float32", "bfloat16"], "shapes": [[64, 256, 64]]},
    "stencil": {"dtypes": ["float32", "float64", "bfloat16"], "shapes": [[32, 48, 4], [16, 16, 2]]},
    "fft": {"dtypes": ["float32", "float64"], "shapes": [[4, 256], [3, 100]]},
    "latency": {"working_set_bytes": [16384]},
    "access": {
        "ops": ["gather_random", "gather_sequential", "scatter_random", "scatter_sequential", "strided_read"],
        "dtypes": ["float32", "bfloat16", "float16", "float64"],
        "working_set_bytes": [16384],
        "stride": [2, 16],
    },
    "transfer": {
        "ops": ["copy_h2d", "copy_d2h", "copy_p2p"],
        "dtypes": ["float32", "bfloat16"],
        "message_bytes": [16384],
    },
    "collectives": {
        "ops": ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ppermute"],
        "dtypes": ["float32", "bfloat16", "float16"],
        "message_bytes": [4096],
        "n_devices": [2, 3, 4],
    },
    "compilation": {"ops": ["compile_trace", "compile_lower", "compile_backend"], "layers": [2]},
    "sort": {"dtypes": ["float32", "int32", "float64"], "shapes": [[4, 256]]},
}
"""By probe, at sizes that a test affords."""
