"""This project's own measurements, made with its own probes on the machines it had."""
