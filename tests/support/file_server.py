"""A server of files on this machine: it takes ranges, cuts connections, and says what it was asked."""

import contextlib
import http.server
import threading

import pytest


class FileServer:
    """Files by path, at `address`.

    cut     of the next answer, how many bytes are sent before the connection ends; None: all
    ranges  whether it takes requests for a part of a file
    sized   whether it says how long an answer is
    kind    what it says an answer is; None: nothing
    asked   the Range header of every request, None where there was none
    """

    def __init__(self, files: dict[str, bytes]):
        self.files, self.cut, self.ranges, self.asked = files, None, True, []
        self.sized, self.kind = True, None
        self.address = ""

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        content = self.files.get(request.path.lstrip("/"))
        if content is None:
            request.send_error(404)
            return
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        request.send_response(206 if first else 200)
        if first:
            request.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        if self.sized:
            request.send_header("Content-Length", str(len(content) - first))
        if self.kind:
            request.send_header("Content-Type", self.kind)
        request.end_headers()
        cut, self.cut = self.cut, None
        request.wfile.write(content[first:][:cut])


@contextlib.contextmanager
def serving(files: dict[str, bytes]):
    """A FileServer that runs as long as the context."""
    served = FileServer(files)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            served.answer(self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1")
        served.address = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
