"""Worked examples on public data. Each runs as `python -m examples.NAME`, from this repository's folder."""
