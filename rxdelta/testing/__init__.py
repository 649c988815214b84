"""Things to test and try pipelines with."""

from rxdelta.testing._samples import SAMPLES, open_sample, sample_chunks

__all__ = ["SAMPLES", "open_sample", "sample_chunks"]
