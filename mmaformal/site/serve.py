"""`mmaformal serve`: a site that was built, on this machine alone."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

HOST = "127.0.0.1"

#: Nothing of another site is loaded, no other site may embed or read a page; WebAssembly may be compiled.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class SiteHandler(SimpleHTTPRequestHandler):
    """Files of one folder, to requests that name this machine; what changes anything is refused."""

    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012 - the base class has it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".json": "application/json",
        ".csv": "text/csv; charset=utf-8",
        ".html": "text/html; charset=utf-8",
    }

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def send_head(self) -> BytesIO | None:
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in (HOST, "localhost"):  # a name of another site that was made to lead here
            self.send_error(421, "This server answers for 127.0.0.1 and localhost")
            return None
        return super().send_head()  # type: ignore[return-value]

    def list_directory(self, path: object) -> None:
        self.send_error(404, "No such page")

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not printed."""


class SiteServer(ThreadingHTTPServer):
    """A server that says nothing of readers who went away."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def server(folder: Path, port: int = 0) -> SiteServer:
    """A server of a folder on 127.0.0.1, bound and not started; port 0 takes a free one.  Raises OSError."""
    return SiteServer((HOST, port), partial(SiteHandler, directory=str(folder)))
