"""Small faults, put into the library one at a time: does a test fail? `python tests/mutation/run.py --help`."""
