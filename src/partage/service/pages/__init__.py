"""The web pages: the operator's dashboard, the join page, and a member's page."""

from typing import Any


def page_routes() -> list[Any]:
    """Return the routes of the pages."""
    from partage.service.pages.routes import routes  # here, because the routes import the application's modules

    return routes()
