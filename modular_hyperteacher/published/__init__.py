"""The numbers that the papers published, as package data."""
