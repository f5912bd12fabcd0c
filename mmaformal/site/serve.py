"""`mmaformal serve`: a site that was built, on this machine alone, and questions that its reader asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

from mmaformal.site.jobs import JobRefusedError, Jobs, Served
from mmaformal.site.playground import answer

HOST = "127.0.0.1"

#: The most bytes of a question.
MOST = 1 << 16

#: Nothing of another site is loaded, no other site may embed or read a page; WebAssembly may be compiled.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

#: Packages for browsers, which change with a build alone: a browser that need not ask for them again keeps what it
#: compiled of them, too.
KEPT, KEEP = ("/pyodide/", "/z3-solver/"), "max-age=604800"


class SiteHandler(SimpleHTTPRequestHandler):
    """Files of one folder, and questions, to requests that name this machine and come from its own pages."""

    server: SiteServer
    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012 - the base class has it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".json": "application/json",
        ".csv": "text/csv; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".gz": "application/gzip",
    }

    def end_headers(self) -> None:
        kept = getattr(self, "path", "").startswith(KEPT)  # a request that cannot be read has none
        for name, value in HEADERS.items():
            self.send_header(name, KEEP if kept and name == "Cache-Control" else value)
        super().end_headers()

    def _for_this_machine(self) -> bool:
        """Whether the request names this machine; one that does not is refused."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host in (HOST, "localhost"):
            return True
        # a name of another site that was made to lead here
        self.send_error(421, "This server answers for 127.0.0.1 and localhost")
        return False

    def send_head(self) -> BytesIO | None:
        if not self._for_this_machine():
            return None
        return super().send_head()  # type: ignore[return-value]

    def do_GET(self) -> None:
        if self.path != "/api/jobs":
            super().do_GET()
        elif self._for_this_machine():
            asks = self.server.jobs.asks
            named = {"recordings": [each.name for each in asks.recordings], "designs": list(asks.designs)}
            self._json(200, {"jobs": self.server.jobs.listed(), **named})

    def do_POST(self) -> None:
        """Answer a question of a page of this very server: never one that another site's page sends."""
        if not self._for_this_machine():
            return
        origin, kind = self.headers.get("Origin"), self.headers.get("Content-Type")
        own = self.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
        if origin != f"http://{self.headers['Host']}" or not own:
            self._refuse(403, "questions come from pages of this server")
            return
        length = self.headers.get("Content-Length", "")
        if kind != "application/json" or not length.isdigit() or int(length) > MOST:
            self._refuse(400, f"a question is JSON of at most {MOST} bytes")
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            found = self._questions()[self.path](asked)
        except KeyError:
            self._refuse(404, "no such question")
        except (JobRefusedError, ValueError, TypeError, AttributeError) as error:
            self._refuse(400, str(error) or "no such question")
        else:
            self._json(200, found)

    def _questions(self) -> dict[str, Callable[[dict[str, object]], object]]:
        jobs = self.server.jobs
        return {
            "/api/jobs": lambda asked: jobs.start(asked).to_json(),
            "/api/cancel": lambda asked: jobs.cancel(int(str(asked.get("number")))).to_json(),
            "/api/evaluate": lambda asked: json.loads(answer(json.dumps(asked))),
        }

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True  # what was sent is not read
        self._json(status, {"error": why})

    def _json(self, status: int, told: object) -> None:
        data = json.dumps(told, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def list_directory(self, path: object) -> None:
        self.send_error(404, "No such page")

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not printed."""


class SiteServer(ThreadingHTTPServer):
    """A server that says nothing of readers who went away, and ends its jobs with itself."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int, asks: Served) -> None:
        self.jobs = Jobs(asks)
        super().__init__((HOST, port), partial(SiteHandler, directory=str(folder)))

    def server_close(self) -> None:
        self.jobs.close()
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def server(folder: Path, port: int = 0, asks: Served | None = None) -> SiteServer:
    """A server of a folder on 127.0.0.1, bound and not started; port 0 takes a free one.  Raises OSError."""
    return SiteServer(folder, port, asks or Served())
