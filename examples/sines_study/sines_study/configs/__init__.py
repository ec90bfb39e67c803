"""The configs of the study."""
