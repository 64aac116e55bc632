"""The service against its own OpenAPI document: schemathesis sends what it allows and what it does not.

python -m fuzz.openapi --seed 0 --examples 100
python -m fuzz.openapi --seconds 60

Every answer has to be one that the document announces, of the type and the schema that it announces, and none may be an
error of ours. What follows is schemathesis's own output, with its counts.
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from tightrope.errors import missing
from tightrope.learners import make_learner
from tightrope.ops import auth
from tightrope.ops.auth import Limits
from tightrope.ops.server import Address, NewLearner, Server
from tightrope.problems.files import load_problem, write_example
from tightrope.service import Client

#: What a document cannot say: which episodes there are, and which paths can happen.
EXCLUDED = "positive_data_acceptance"

TOKEN = "known to schemathesis"


def main() -> None:
    """Parse the command line and run the fuzzer."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.openapi", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="other requests (default 0)")
    parser.add_argument("--examples", type=int, default=100, help="for each operation (default 100)")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds, without an error if none was found")
    given = parser.parse_args()
    if importlib.util.find_spec("schemathesis") is None:
        sys.exit(str(missing("schemathesis", "fuzz")))
    auth.WRONG_RATE = 1e9  # schemathesis sends many wrong tokens, and does not expect 429
    with TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        write_example(folder / "machine")
        problem = load_problem(folder / "machine")
        new = NewLearner(folder / "learner", problem, make_learner("ucpd-practical", problem))
        server = Server(folder / "learner", Address(token=TOKEN, limits=Limits(rate=1e9)), new, most_open=10**6)
        running = Thread(target=server.run)
        running.start()
        try:
            Client(server.address, "learner", TOKEN, patience=600).state()
            command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}openapi.json"]
            command += ["--checks", "all", "--exclude-checks", EXCLUDED, "--continue-on-failure"]
            command += ["--header", f"Authorization: Bearer {TOKEN}"]
            command += ["--seed", str(given.seed), "--max-examples", str(given.examples), "--no-color"]
            if given.seconds is not None:
                command += ["--max-time", f"{given.seconds:g}"]
            code = subprocess.run(command, cwd=folder).returncode
            Client(server.address, "learner", TOKEN).state()  # it is still there
        finally:
            server.stop()
            running.join()
    sys.exit(code)


if __name__ == "__main__":
    main()
