"""A server for tests of programs that use leases.

    def test_refund(interlock_server, interlock_client):
        with interlock_client.lease("account:1"):
            ...

Both names are fixtures of pytest, which this package registers. interlock_server is one LocalServer for the whole
run, and sets INTERLOCK_URL; interlock_client is a client of its own for each test.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from types import TracebackType


class LocalServer:
    """A server of this machine, on free ports, with a journal in a temporary folder.

    The binary is $INTERLOCK_BINARY, or interlock of the PATH.
    """

    def __init__(self, binary: str | None = None) -> None:
        found = binary or os.environ.get("INTERLOCK_BINARY") or shutil.which("interlock")
        if not found:
            raise FileNotFoundError("there is no interlock in the PATH: install it, or set INTERLOCK_BINARY")
        self.binary = found
        self.folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="interlock-")
        self.url: str = ""
        #: The address for the environment variable INTERLOCK_GRPC, of commands such as `interlock run`.
        self.grpc: str = ""
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> LocalServer:
        """Starts it, or starts it again at the same address and over the same journal."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        command = [self.binary, "serve", "--data-dir", os.path.join(self.folder.name, "data")]
        command += ["--http", self._address, "--grpc", "127.0.0.1:0"]
        with open(os.path.join(self.folder.name, "log"), "ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready http="):
            self.kill()
            with open(os.path.join(self.folder.name, "log")) as text:
                raise RuntimeError(f"the server has not started: {line}{text.read()}")
        self._address = line.split()[1].removeprefix("http=")
        self.url = "http://" + self._address
        self.grpc = line.split("grpc=")[1].split()[0]
        return self

    def signal(self, number: int) -> None:
        """Sends the server a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def pause(self) -> None:
        """Lets the server stand still."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Ends that."""
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kills the server, as a crash does. start starts it again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def stop(self) -> None:
        """Ends the server, and removes its journal."""
        self.kill()
        self.folder.cleanup()

    def __enter__(self) -> LocalServer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
