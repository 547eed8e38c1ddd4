"""Everything that is shown: terminal tables, figures, data files and the HTML report."""
