"""From a difference to a finding: the smallest input, the line where it begins, who is to blame, what is kept of it."""
