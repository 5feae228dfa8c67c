"""A server of files on this machine: it cuts connections, and says what it was asked."""

import contextlib
import http.server
import threading

import pytest


class FileServer:
    """Files by path, at `address`.

    cut    of the next answer, how many bytes are sent before the connection ends; None: all
    asked  the path of every request
    """

    def __init__(self, files: dict[str, bytes]):
        self.files, self.cut, self.asked = files, None, []
        self.address = ""

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        content = self.files.get(request.path.lstrip("/"))
        if content is None:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        cut, self.cut = self.cut, None
        request.wfile.write(content[:cut])


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
