"""Loops in C beside the memory probes: the STREAM kernels, and a dependent pointer chase."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

__all__ = ["chase_seconds", "compile_chase", "compile_stream", "stream_seconds"]

STREAM = r"""
#include <omp.h>
#include <stdlib.h>

#define OFFSET 16
#define COLS 1024

static float *t, *b, *c, *v;
static long n;

/* Arrays of n elements; each thread touches first what it will use. */
int setup(long elements, int threads) {
    n = elements;
    omp_set_num_threads(threads);
    t = aligned_alloc(64, (n + OFFSET) * sizeof(float));
    b = aligned_alloc(64, (n + OFFSET) * sizeof(float));
    c = aligned_alloc(64, (n + OFFSET) * sizeof(float));
    v = aligned_alloc(64, COLS * sizeof(float));
    if (!t || !b || !c || !v) return 1;
    #pragma omp parallel for schedule(static)
    for (long j = 0; j < n + OFFSET; j++) {
        t[j] = 1.0f; b[j] = 0.5f + (j % 1000) * 1e-3f; c[j] = 1.5f - (j % 777) * 1e-3f;
    }
    for (long j = 0; j < COLS; j++) v[j] = 1.0f;
    return 0;
}

void teardown(void) { free(t); free(b); free(c); free(v); }

/* Seconds of one repetition, mean of reps inside one parallel region. */
#define KERNEL(NAME, BODY)                                                    \
double NAME(int reps) {                                                       \
    double start = 0, stop = 0;                                               \
    _Pragma("omp parallel")                                                   \
    {                                                                         \
        long threads = omp_get_num_threads(), me = omp_get_thread_num();      \
        long from = n / COLS * me / threads * COLS;                           \
        long to = n / COLS * (me + 1) / threads * COLS;                       \
        _Pragma("omp barrier")                                                \
        _Pragma("omp master")                                                 \
        start = omp_get_wtime();                                              \
        for (int i = 0; i < reps; i++) {                                      \
            float s = 3.0f + 1e-6f * i;                                       \
            long shift = (i & 1) * OFFSET;                                    \
            (void)s; (void)shift;                                             \
            BODY                                                              \
            __asm__ volatile("" ::: "memory");                                \
        }                                                                     \
        _Pragma("omp barrier")                                                \
        _Pragma("omp master")                                                 \
        stop = omp_get_wtime();                                               \
    }                                                                         \
    return (stop - start) / reps;                                             \
}

KERNEL(stream_copy, for (long j = from; j < to; j++) t[j] = b[j + shift];)
KERNEL(stream_scale, for (long j = from; j < to; j++) t[j] = s * b[j];)
KERNEL(stream_add, for (long j = from; j < to; j++) t[j] = b[j] + c[j + shift];)
KERNEL(stream_triad, for (long j = from; j < to; j++) t[j] = b[j] + s * c[j];)
/* Eight rows at a time, as XLA's matrix-vector product and any good one: sums of one row would wait for each other. */
#define ROW(K) b[r + K * COLS + j] * v[j]
KERNEL(stream_read,
    long r = from;
    for (; r + 8 * COLS <= to; r += 8 * COLS) {
        float s0 = 0; float s1 = 0; float s2 = 0; float s3 = 0;
        float s4 = 0; float s5 = 0; float s6 = 0; float s7 = 0;
        _Pragma("omp simd reduction(+:s0,s1,s2,s3,s4,s5,s6,s7)")
        for (long j = 0; j < COLS; j++) {
            s0 += ROW(0); s1 += ROW(1); s2 += ROW(2); s3 += ROW(3);
            s4 += ROW(4); s5 += ROW(5); s6 += ROW(6); s7 += ROW(7);
        }
        float *y = t + r / COLS;
        y[0] = s0; y[1] = s1; y[2] = s2; y[3] = s3; y[4] = s4; y[5] = s5; y[6] = s6; y[7] = s7;
    }
    for (; r < to; r += COLS) {
        float sum = 0;
        _Pragma("omp simd reduction(+:sum)")
        for (long j = 0; j < COLS; j++) sum += b[r + j] * v[j];
        t[r / COLS] = sum;
    })
"""

CHASE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int32_t *table;
static int32_t at;

int setup(const int32_t *from, long elements, int32_t start) {
    table = aligned_alloc(64, ((elements * sizeof(int32_t) + 63) / 64) * 64);
    if (!table) return 1;
    memcpy(table, from, elements * sizeof(int32_t));
    at = start;
    return 0;
}

void teardown(void) { free(table); table = 0; }

/* Seconds of one hop, mean over all of them; goes on where the last call stopped. */
double chase(long hops) {
    struct timespec start, stop;
    int32_t i = at;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long k = 0; k < hops; k++) i = table[i];
    clock_gettime(CLOCK_MONOTONIC, &stop);
    *(volatile int32_t *)&at = i;
    return ((stop.tv_sec - start.tv_sec) + 1e-9 * (stop.tv_nsec - start.tv_nsec)) / hops;
}
"""


def _compiled(folder: Path, name: str, source: str, *flags: str) -> ctypes.CDLL:
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("this comparison needs gcc")
    written, library = folder / f"{name}.c", folder / f"{name}.so"
    written.write_text(source)
    command = [compiler, "-O3", "-march=native", *flags, "-shared", "-fPIC", str(written), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def compile_stream(folder: Path) -> ctypes.CDLL:
    """Compile the STREAM loops; no call to memcpy in place of the copy loop, whose stores bypass the cache."""
    library = _compiled(folder, "stream", STREAM, "-fopenmp", "-fno-tree-loop-distribute-patterns")
    library.setup.argtypes = [ctypes.c_long, ctypes.c_int]
    return library


def stream_seconds(library: ctypes.CDLL, op: str, repetitions: int) -> Callable[[], float]:
    """A function that returns the seconds of one execution in C."""
    function = getattr(library, op)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_int]
    return lambda: float(function(repetitions))


def compile_chase(folder: Path) -> ctypes.CDLL:
    """Compile the chase."""
    library = _compiled(folder, "chase", CHASE)
    library.setup.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int32]
    library.chase.restype, library.chase.argtypes = ctypes.c_double, [ctypes.c_long]
    return library


def chase_seconds(library: ctypes.CDLL, table: np.ndarray, start: int, longest_s: float) -> Callable[[], float]:
    """A function that returns the seconds of one hop along a cycle, a copy of which C holds from now on."""
    if library.setup(table.ctypes.data, table.size, start):
        sys.exit("not enough memory for the C array")
    hops = 1000
    while hops * library.chase(hops) < longest_s / 2:
        hops *= 2
    return lambda: float(library.chase(hops))
