"""The page that shows all figures and claims."""
