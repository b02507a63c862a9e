"""Programs that run: what a profiler saw of them, beside what was predicted."""
