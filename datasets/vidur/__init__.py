"""Vidur's LLM layer profiles and collectives on A100 and A40."""
