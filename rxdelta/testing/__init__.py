"""Samples for tests and trials of pipelines."""

from rxdelta.testing._samples import SAMPLES, open_sample, sample_chunks

__all__ = ["SAMPLES", "open_sample", "sample_chunks"]
