"""The toy API that http.sh guards: accounts with a balance, for whoever knows the token."""

import http.server
import sys

token = open(sys.argv[1]).read().strip()
balance = {"12345": 100}


class API(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(lambda account: balance[account])

    def do_POST(self):
        amount = int(self.rfile.read(int(self.headers["Content-Length"])))

        def charge(account):
            balance[account] -= amount
            return f"{balance[account]}, charged by {self.headers['Interlock-Agent']} under fence {self.headers['Interlock-Fence']}"

        self.answer(charge)

    def answer(self, do):
        known = self.headers["Authorization"] == f"Bearer {token}"
        body = f"{do(self.path.split('/')[2])}\n" if known else "who are you?\n"
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), API)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
