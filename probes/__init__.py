"""The `probes` room, installed as ``bayesperf.probes``."""

if __name__ != "bayesperf.probes":
    # With the repository root on sys.path, somebody's `import probes` must not pick up ours.
    raise ImportError("this folder is installed as bayesperf.probes; import it under that name")
