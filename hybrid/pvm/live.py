"""A web page that shows a run in training, only to browsers of this machine: `hybrid train pvm --live`.

Pictures are drawn only on request: the latest complete tick, at most twice a second for all browsers together.
"""

import base64
import errno
import json
import secrets
import socketserver
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from . import panel
from .figures import Pair
from .model import PVM


class Latest:
    """The latest complete tick and its next frame, `pair`; its pictures are made on request.

    Two threads may use it. Only the first of several streams is shown.

    aspect  width / height of the original frames, see `aspect_of` in hybrid/feeds/video/clip.py
    video   its name
    """

    def __init__(self, model: PVM, aspect: float, video: str):
        self.config, self.wiring, self.aspect, self.video = model.config, model.wiring, aspect, video
        self.pair: Pair | None = None
        self._alone = model.streams == 1

    def views(self) -> dict[str, panel.View]:
        """Returns views by caption; {} before the first pair."""
        if (pair := self.pair) is None:
            return {}
        seen, pictures = pair.seen, (pair.after[0], pair.prediction[0])
        hidden, heatmap, off = self._first(seen.hidden), seen.heatmap, (pair.error, pair.last_frame)
        if heatmap is not None and not self._alone:
            heatmap = heatmap[0]
        return panel.views(self.config, self.wiring, pictures, hidden, heatmap, off)

    def _first(self, hidden: list[np.ndarray]) -> list[np.ndarray]:
        return hidden if self._alone else [layer[0].copy() for layer in hidden]

    def picture(self) -> np.ndarray | None:
        """Returns all views side by side; None before the first pair."""
        if (pair := self.pair) is None:
            return None
        title = f"{self.config.name}, step {pair.seen.tick + 1:,}, {self.video}"
        return panel.side_by_side(self.views(), aspect=self.aspect, title=title)


ADDRESS = "127.0.0.1"
REST = 0.5  # seconds for which an answer is cached
POINTS = 400  # of a curve, at most the width of a page
PAGE = Path(__file__).with_name("live.html")


class Live:
    """A server at http://127.0.0.1:PORT within its context, in daemon threads.

    port  0: any free one

    Raises ValueError, naming the port, if it is in use, and OSError for any other failure.
    """

    def __init__(self, port: int):
        try:
            self._server = _Server((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ValueError(f"--live {port}: found the port in use on {ADDRESS}; expected a free one") from None
            raise OSError(error.errno, f"--live {port}: cannot be opened on {ADDRESS} ({error.strerror})") from None
        self._server.live, self.port = self, self._server.server_port
        self._source: Callable[[], dict[str, Any]] = dict
        self._drawing = threading.Lock()
        self._answer, self._drawn = b"{}", -REST
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="hybrid live", daemon=True).start()

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{ADDRESS}:{self.port}"

    def show(self, latest: Latest, progress: Callable[[], dict[str, Any]]) -> None:
        """Shows a run; progress, JSON-compatible, is called in another thread: step, of, rate, curve."""
        self._source = lambda: state(latest, progress())

    def state(self) -> bytes:
        """Returns the content of the page as JSON."""
        with self._drawing:
            if time.monotonic() - self._drawn >= REST:
                self._answer = json.dumps(self._source()).encode()
                self._drawn = time.monotonic()
            return self._answer

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def state(latest: Latest, progress: dict[str, Any]) -> dict[str, Any]:
    """Returns the content of the page, JSON-compatible; "png": the picture in base64, "" before the first pair."""
    curve, picture = progress["curve"], latest.picture()
    return progress | {
        "name": latest.config.name,
        "video": latest.video,
        "curve": curve[:: -(-len(curve) // POINTS) or 1],
        "png": "" if picture is None else base64.b64encode(panel.png(picture)).decode(),
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    live: Live

    def server_bind(self) -> None:
        """Binds without the name lookup that HTTPServer makes for its own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a browser that disconnects, or sends malformed requests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10  # seconds to wait for a request

    def do_GET(self) -> None:
        """Answers a request; rejects one for another host, which comes from a foreign page (DNS rebinding)."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", b"this page is shown on this machine only\n")
        elif self.path == "/":
            nonce = secrets.token_urlsafe(16)
            self._send(200, "text/html; charset=utf-8", PAGE.read_bytes().replace(b"{nonce}", nonce.encode()), nonce)
        elif self.path == "/state":
            self._state()
        else:
            self._send(404, "text/plain", b"there is / and /state\n")

    def _state(self) -> None:
        try:
            self._send(200, "application/json", self.server.live.state())
        except OSError:
            raise
        except Exception as error:  # a failed picture must not stop a run
            self._send(500, "text/plain", f"cannot be drawn: {error}\n".encode())

    def _send(self, status: int, kind: str, body: bytes, nonce: str = "") -> None:
        allowed = f"; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'" if nonce else ""
        policy = f"default-src 'none'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'{allowed}"
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        headers |= {"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"}
        for name, value in (headers | {"Content-Security-Policy": policy}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing: stderr has the progress bar."""
