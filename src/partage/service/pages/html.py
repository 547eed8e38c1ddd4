"""Templates, static files, and the headers of every page."""

import hashlib
from pathlib import Path
from typing import Any

import jinja2
from litestar import Response

HERE = Path(__file__).parent
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

# Nothing inline and nothing from other sites, so text that a member typed can never run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Static:
    """The static files, in memory: there are few, and no path from a request ever reaches the disk."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, tuple[bytes, str, str]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in KINDS:
                body = path.read_bytes()
                name = path.relative_to(folder).as_posix()
                self.files[name] = body, KINDS[path.suffix], hashlib.sha256(body).hexdigest()[:16]

    def address(self, name: str) -> str:
        """Return a file's address. It changes with the content, so browsers can cache it forever."""
        return f"/static/{name}?v={self.files[name][2]}"


STATIC = Static(HERE / "static")


def money(micro: int, fine: bool = False) -> str:
    """Return an amount in units as text: to the hundredth, or with `fine` to the micro-unit.

    >>> money(1_234_567_890), money(-5_000_000), money(4), money(-4), money(-250_004, fine=True)
    ('1,234.57', '−5.00', '0.00', '0.00', '−0.250004')
    """
    size = abs(micro) if fine else (abs(micro) + 5_000) // 10_000 * 10_000
    sign = "−" if micro < 0 < size else ""
    units, rest = divmod(size, 1_000_000)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}{units:,}.{digits}"


def listed(names: list[str], most: int = 4) -> str:
    """Return names as an enumeration in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2), listed([])
    ('a, b and c', 'a, b and 2 more', 'nothing')
    """
    if not names:
        return "nothing"
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "arm"), counted(2000, "arm"), counted(2, "try", "tries")
    ('1 arm', '2,000 arms', '2 tries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals["static"] = STATIC.address
TEMPLATES.filters.update(money=money, listed=listed, counted=counted)


def page(template: str, status: int = 200, headers: dict[str, str] | None = None, **given: Any) -> Response[str]:
    """Return a page or a fragment of one."""
    text = TEMPLATES.get_template(template).render(given)
    return Response(text, status_code=status, media_type="text/html", headers={**HEADERS, **(headers or {})})
