"""Pages for people: the operator's dashboard, joining, and a member's page."""

from typing import Any


def page_routes() -> list[Any]:
    """Return the routes of the pages."""
    from partage.service.pages.routes import routes  # the application imports us, and the routes import it

    return routes()
