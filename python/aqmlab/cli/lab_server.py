"""Server of `aqmlab lab`: one page, on this machine only, for users who know its address.

It listens on the loopback interface and answers GET for addresses that begin with a token that
nobody can guess. A request whose `Host` is another name is refused, so no page from elsewhere can
reach it by a name of its own, and nothing is answered for other origins.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("lab.html")
GIVEN = '<script type="application/json" id="given">null</script>'
TOKEN_BYTES = 16
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)

Live = Callable[[], list[dict[str, Any]]]
"""The links of an emulator, as they are now."""


def page_with(given: object) -> str:
    """The page that begins with a scenario, or with what else is `given`."""
    text = PAGE.read_text(encoding="utf-8")
    content = json.dumps(given).replace("</", "<\\/").replace("<!--", "<\\!--")
    if text.count(GIVEN) != 1:
        raise ValueError(f"{PAGE} has no place for a scenario")
    return text.replace(GIVEN, GIVEN.replace("null", content))


class LabServer(ThreadingHTTPServer):
    """A server for one page. `address` is where it is."""

    daemon_threads = True

    def __init__(self, given: object, live: Live | None = None, port: int = 0) -> None:
        self.page = page_with(given).encode()
        self.live = live
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def host(self) -> str:
        """The name by which it may be asked."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{self.host}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: LabServer
    server_version = "aqmlab"
    sys_version = ""

    def do_GET(self) -> None:
        parts = self.path.split("/", 2)
        token, name = (parts[1], parts[2]) if len(parts) == 3 else ("", None)
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        origin = self.headers.get("Origin")
        foreign = origin is not None and origin != f"http://{self.server.host}"
        if self.headers.get("Host") != self.server.host or foreign or not known:
            self._answer(403, b"This address is not for you.\n", "text/plain; charset=utf-8")
        elif name == "":
            self._answer(200, self.server.page, "text/html; charset=utf-8")
        elif name == "live" and self.server.live is not None:
            self._answer(200, json.dumps(self.server.live()).encode(), "application/json")
        else:
            self._answer(404, b"There is nothing here.\n", "text/plain; charset=utf-8")

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        for header, value in (*HEADERS, ("Content-Type", kind)):
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal is for the address."""
