"""The report: figures, tables, one self-contained page."""
