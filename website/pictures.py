"""Pictures of the live pages for the docs: `make pictures` draws docs/figures/dashboard.png and member.png.

The bakers of the demo play a collaboration on a server of its own, always with the same results, and Chromium takes
the pictures. They show the pages as they are today; times and ids differ.
"""

import random
import shutil
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright
from tests.support.server import Server

from partage.demo.bakers import BAKERS, HORIZON, PREPAID, SUPPLIERS, VALUE

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
MEMBER = "L'Épi d'Or"
ROUNDS = 200  # pulls of each baker


def main() -> None:
    """Play, and draw both pictures."""
    with tempfile.TemporaryDirectory() as folder, Server(f"sqlite:///{folder}/partage.db") as server:
        id, tokens = played(server)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, token, path in (
                ("dashboard", server.operator_token, f"/c/{id}"),
                ("member", tokens[MEMBER], "/me"),
            ):
                page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                draw(page, server.url, token, path, FIGURES / f"{name}.png")


def played(server: Server) -> tuple[str, dict[str, str]]:
    """Play a collaboration for a while, and return its id and the tokens of its members."""
    chance = random.Random(0)
    with httpx.Client(base_url=f"{server.url}/v1", timeout=60.0) as api:

        def call(path: str, token: str, body: dict[str, object]) -> httpx.Response:
            return api.post(path, json=body, headers={"Authorization": f"Bearer {token}"})

        config = {"name": "Flour suppliers", "arms": list(SUPPLIERS), "horizon": HORIZON, "value": VALUE}
        config |= {"rule": "balanced-glr", "prepaid": PREPAID, "currency": "EUR", "invites": len(BAKERS) + 2}
        made = call("/collaborations", server.operator_token, config).raise_for_status().json()
        path = f"/collaborations/{made['id']}"
        tokens = {}
        for invite, (name, shares) in zip(made["invites"], BAKERS.items(), strict=False):
            joined = call(f"{path}/agents", invite, {"name": name, "shares": shares}).raise_for_status()
            tokens[name] = joined.json()["token"]
        for _ in range(ROUNDS):
            for token in tokens.values():
                asked = call(f"{path}/ask", token, {})
                if asked.status_code == 409:  # the tie order is still being drawn, or others must report first
                    continue
                pull = asked.raise_for_status().json()
                if pull["share"]:
                    reward = float(chance.random() < SUPPLIERS[pull["arm"]])
                    call(f"{path}/tell", token, {"pull": pull["pull"], "reward": reward}).raise_for_status()
    return made["id"], tokens


def draw(page: Page, url: str, token: str, path: str, file: Path) -> None:
    """Log in, open a page and take its picture."""
    page.goto(url)
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda now: not now.endswith("/login"))
    page.goto(url + path)
    page.wait_for_selector("#arms .arm")
    page.wait_for_selector("canvas")
    page.wait_for_timeout(2500)  # until the settlement and the history have arrived
    page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    main()
