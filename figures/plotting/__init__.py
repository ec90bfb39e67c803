"""From tables to plotly figures; nothing here knows what is plotted."""
