"""Collaborations in memory, and the writer through which every change goes."""
