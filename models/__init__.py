"""The `models` room, installed as ``bayesperf.models``."""

if __name__ != "bayesperf.models":
    # With the repository root on sys.path, somebody's `import models` must not pick up ours.
    raise ImportError("this folder is installed as bayesperf.models; import it under that name")
