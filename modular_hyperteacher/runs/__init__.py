"""Trains, saves, resumes and summarises one run."""
