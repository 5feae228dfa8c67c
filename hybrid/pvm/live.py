"""A page that shows a run while it learns, to browsers of this machine only: `hybrid train pvm --live`.

Nothing is drawn before a browser asks, and then the latest complete tick, at most twice a second for all browsers together.
"""

import base64
import contextlib
import errno
import json
import secrets
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from .. import console
from . import panel
from .figures import WINDOW, Counts, Pair, count_layers
from .model import PVM

# Pictures of a run that learns: those of its latest complete tick.


class Latest:
    """Takes pairs as they come, which costs next to nothing, and makes pictures of the last one when they are asked for.

    Both may happen in two threads. Of several streams the first is shown.

    aspect  width / height of what frames show, see `frames.aspect_of`
    video   its name
    """

    def __init__(self, model: PVM, aspect: float, video: str):
        self.config, self.wiring, self.aspect, self.video = model.config, model.wiring, aspect, video
        self.pair: Pair | None = None
        self._alone = model.streams == 1
        self._recent: deque[list[np.ndarray]] = deque(maxlen=WINDOW)

    def take(self, pair: Pair) -> None:
        """A tick is complete, and the frame after it has come; of one before a resume the prediction alone is known."""
        if hidden := pair.seen.hidden:
            self._recent.append(self._first(hidden))
        self.pair = pair

    def counts(self) -> list[Counts]:
        """Of each layer in the last complete ticks; [] as long as there are too few."""
        return count_layers(tuple(self._recent), self.config)

    def views(self) -> dict[str, panel.View]:
        """By caption; {} before the first pair."""
        if (pair := self.pair) is None:
            return {}
        seen, pictures = pair.seen, (pair.after[0], pair.prediction[0])
        hidden, heatmap, off = self._first(seen.hidden), seen.heatmap, (pair.error, pair.last_frame)
        if heatmap is not None and not self._alone:
            heatmap = heatmap[0]
        return panel.views(self.config, self.wiring, pictures, hidden, heatmap, tuple(self._recent), off)

    def _first(self, hidden: list[np.ndarray]) -> list[np.ndarray]:
        """Hidden numbers of the first stream."""
        return hidden if self._alone else [layer[0].copy() for layer in hidden]

    def picture(self) -> np.ndarray | None:
        """All views side by side; None before the first pair."""
        if (pair := self.pair) is None:
            return None
        title = f"{self.config.name}, step {pair.seen.tick + 1:,}, {self.video}"
        return panel.side_by_side(self.views(), aspect=self.aspect, title=title)


ADDRESS = "127.0.0.1"
REST = 0.5  # seconds for which an answer is given again
POINTS = 400  # of a curve: a page is no wider
PAGE = Path(__file__).with_name("live.html")


class Live:
    """Serves http://127.0.0.1:PORT until it is closed, in threads that end with the process.

    port  0: any free one

    Raises ValueError, naming the port, where it is in use, and OSError where it cannot be had for another reason.
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
        """What to type into a browser."""
        return f"http://{ADDRESS}:{self.port}"

    def show(self, latest: Latest, progress: Callable[[], dict[str, Any]]) -> None:
        """Show a run from here on; progress, JSON-able, is asked in another thread: step, of, rate, curve."""
        self._source = lambda: state(latest, progress())

    def state(self) -> bytes:
        """What the page shows, as JSON."""
        with self._drawing:
            if time.monotonic() - self._drawn >= REST:
                self._answer = json.dumps(self._source()).encode()
                self._drawn = time.monotonic()
            return self._answer

    def close(self) -> None:
        """Free the port."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextlib.contextmanager
def page(options: dict[str, Any]) -> Generator[Live | None, None, None]:
    """The page that the options ask for, as long as this is open; says once where it is."""
    if not options.get("live"):
        yield None
        return
    with Live(options["live"]) as live:
        console.tell(f"live on {live.address}")
        yield live


def state(latest: Latest, progress: dict[str, Any]) -> dict[str, Any]:
    """All that the page shows, JSON-able: pictures are data URLs, each pixel a number or a pixel of the frame."""
    curve = progress["curve"]
    return progress | {
        "name": latest.config.name,
        "video": latest.video,
        "aspect": latest.aspect,
        "curve": curve[:: -(-len(curve) // POINTS) or 1],
        "views": [_view(name, view) for name, view in latest.views().items()],
    }


def _view(name: str, view: panel.View) -> dict[str, Any]:
    data = base64.b64encode(panel.png(view.picture)).decode()
    return {"name": name, "note": view.note, "units": view.units, "scale": view.scale, "png": data}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    live: Live

    def server_bind(self) -> None:
        """Without the name server, which HTTPServer asks for its own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away, or sends nonsense, does not concern the run."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10  # seconds for a browser to say what it wants

    def do_GET(self) -> None:
        """Answer; a request that names another host comes from a page elsewhere that was sent here (DNS rebinding)."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", b"this page is shown on this machine only\n")
        elif self.path == "/":
            nonce = secrets.token_urlsafe(16)
            self._send(200, "text/html; charset=utf-8", PAGE.read_bytes().replace(b"{nonce}", nonce.encode()), nonce)
        elif self.path == "/state":
            self._state()
        elif self.path in ("/viridis.png", "/inferno.png"):
            self._send(200, "image/png", panel.png(panel.colours(self.path[1:-4])[None]))
        else:
            self._send(404, "text/plain", b"there is / and /state\n")

    def _state(self) -> None:
        try:
            self._send(200, "application/json", self.server.live.state())
        except OSError:
            raise
        except Exception as error:  # a picture that fails stops no run
            self._send(500, "text/plain", f"cannot be drawn: {error}\n".encode())

    def _send(self, status: int, kind: str, body: bytes, nonce: str = "") -> None:
        allowed = f"; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'" if nonce else ""
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            (
                "Content-Security-Policy",
                f"default-src 'none'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'{allowed}",
            ),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: stderr has the progress bar."""
