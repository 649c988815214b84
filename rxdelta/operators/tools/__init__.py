"""Tools: running a reply's calls while it streams, and waiting for their end.

`run_tools` decides: `asked_calls` says which calls are to be run, `approvals` asks a person, `tool_execution` runs the
tool, and `tool_runs` keeps the runs and their updates. A tool may be an agent: `sub_agent` has its messages.
"""
