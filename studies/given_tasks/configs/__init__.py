"""Configs of this study."""
