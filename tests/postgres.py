"""A real PostgreSQL server on a free port of this machine, for one test run."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs():
    """Where PostgreSQL's own programs are, if they are."""
    places = [shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)]
    return next((Path(place).resolve().parent for place in places if place), None)


def owner():
    """Who may run the server: it refuses to be root."""
    if os.geteuid():
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@contextmanager
def server():
    """Its address; everything it wrote is gone afterwards."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: no initdb on the path nor under /usr/lib/postgresql")
    user = owner()
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir(mode=0o700)
        if user:
            shutil.chown(place, user)
            shutil.chown(data, user)
        name = user or getpass.getuser()
        port = free_port()

        def run(program, *arguments):
            command = [folder / program, "--pgdata", data, *arguments]
            subprocess.run(command, user=user, check=True, capture_output=True, timeout=120, cwd=place)

        run("initdb", "--auth=trust", "--encoding=UTF8", "--no-sync", f"--username={name}")
        options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={place} -c fsync=off -p {port}"
        run("pg_ctl", "--wait", f"--log={place}/log", f"--options={options}", "start")
        try:
            yield f"postgresql://{name}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "--wait", "--mode=immediate", "stop")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
