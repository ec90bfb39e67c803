"""Numbers published in the papers, as package data."""
