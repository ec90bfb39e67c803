"""Studies beyond the paper, one folder each."""
