import os

from hypothesis import settings

# Compiled code is slow the first time it is called. CI plays the same examples every time.
settings.register_profile("partage", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("partage")
