"""``python -m bayesperf`` is the command line."""

from bayesperf.cli import main

if __name__ == "__main__":
    main()
