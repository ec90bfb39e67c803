"""From finished runs to figures, tables and verdicts; nothing trains here."""
