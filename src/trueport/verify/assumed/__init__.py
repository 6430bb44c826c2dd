"""What a trace took for granted, judged by eager: free sizes (`sizes.py`) and state (`state.py`)."""
