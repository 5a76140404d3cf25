#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers of an exporter that rmm-top must bear.

    odd_exporter.py PORT [JSON]

Listens on all addresses of the loopback interface. /json gives the file JSON; other paths give what
their names say. The first line of the output says that it listens."""
import http.server
import socketserver
import sys
import threading

HOST = '{"schema_version": 1, "devices": [{"device": "host"}], "processes": [%s]}'
TEXTS = {
    '/empty': '',
    '/text': 'metrics 1\n',
    '/list': '[]',
    '/other': '{"schema_version": 2}',
    '/twice': '{"schema_version": 1, "schema_version": 1, "devices": [], "processes": []}',
    '/nobody': HOST % '{"state": "live", "uid": -1}',
    '/nowhere': HOST % '{"state": "live", "uid": 0, "devices": [{"device": "gpu9"}]}',
    '/deep': '[' * 1000000,
    '/cut': HOST[:50],
    '/escapes': HOST % '{"state": "live", "pid": "7", "uid": 0, "comm": "a\\u001b[2Jb", '
                       '"devices": [{"device": "host", "current_bytes": 7}]}',
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    over = threading.Event()
    file = b''

    def log_message(self, *_):
        pass

    def send(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def flood(self, head, piece):
        """Until the client goes away."""
        self.close_connection = True
        try:
            self.wfile.write(head)
            while not self.over.is_set():
                self.wfile.write(piece)
        except OSError:
            pass

    def drip(self):
        self.close_connection = True
        try:
            while not self.over.wait(0.2):
                self.wfile.write(b' ')
        except OSError:
            pass

    def do_GET(self):
        if self.path == '/json':
            self.send(self.file)
        elif self.path in TEXTS:
            self.send(TEXTS[self.path].encode())
        elif self.path == '/redirect':
            self.send(b'', 302, Location='/json')
        elif self.path == '/redirect_to_file':
            self.send(b'', 301, Location='file:///etc/passwd')
        elif self.path == '/error':
            self.send(b'rmm-exporter: rmmfs does \x1b[2Jnot answer\n', 503)
        elif self.path == '/huge':
            self.send_response(200)
            self.send_header('Content-Length', str(1 << 40))
            self.end_headers()
            self.close_connection = True
        elif self.path == '/endless':
            self.flood(b'HTTP/1.1 200 OK\r\n\r\n', b' ' * 65536)
        elif self.path == '/head':
            self.flood(b'HTTP/1.1 200 OK\r\n', b'X-%s: 1\r\n' % (b'x' * 4096))
        elif self.path == '/noise':
            self.flood(b'', b'\0\xff' * 512)
        elif self.path == '/bomb':
            self.send(b'\x1f\x8b' + bytes(100), **{'Content-Encoding': 'gzip'})
        elif self.path == '/drip':
            self.send_response(200)
            self.end_headers()
            self.drip()
        elif self.path == '/silent':
            self.close_connection = True
            self.over.wait()
        elif self.path == '/gone':
            self.close_connection = True
        else:
            self.send(b'', 404)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 200


def main():
    if len(sys.argv) > 2:
        with open(sys.argv[2], 'rb') as file:
            Handler.file = file.read()
    server = Server(('127.0.0.1' if len(sys.argv) <= 2 else '', int(sys.argv[1])), Handler)
    print('listens', flush=True)
    server.serve_forever()


main()
