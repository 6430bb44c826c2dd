"""The sweep over torch's own samples of every operator (`make sweep-ops`)."""
