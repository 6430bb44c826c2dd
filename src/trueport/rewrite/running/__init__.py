"""What rewritten and probed code calls while it runs. Outside a trace it is plain Python."""
