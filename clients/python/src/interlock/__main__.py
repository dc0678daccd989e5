"""Prints the version of the client and whether a server answers. Usage: python -m interlock [URL]"""

from __future__ import annotations

import sys

from . import Client, InterlockError, __version__
from ._sync import urls_of


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 if a server answers."""
    urls = urls_of(arguments[0] if arguments else None)
    print(f"interlock-client {__version__}, Python {sys.version.split()[0]}")
    with Client(urls, retry_for=0) as client:
        try:
            status = client.status()
        except InterlockError as error:
            print(f"{', '.join(urls)}: {error}")
            return 1
    print(f"{', '.join(urls)}: interlock {status['version']} answers, namespace {status['namespace']['name']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
