"""The `datasets` room, installed as ``bayesperf.datasets``."""

if __name__ != "bayesperf.datasets":
    # With the repository root on sys.path, somebody's `import datasets` must not pick up ours.
    raise ImportError("this folder is installed as bayesperf.datasets; import it under that name")
