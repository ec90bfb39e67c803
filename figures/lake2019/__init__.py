"""Tables and figures of the second system (Lake, 2019)."""
