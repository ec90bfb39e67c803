"""The life of one run: trained, killed, resumed, finished, described."""
