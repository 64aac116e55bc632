"""A service in a thread, and raw requests to it over a socket."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

from tightrope import load_problem, make_learner
from tightrope.learners.base import LearnerBase
from tightrope.ops.server import Address, NewLearner, Server


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """The kind of the error in the answer."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.body["status"] == self.status
        return str(self.body["type"].removeprefix("/docs#"))


class Running:
    """A service of the learner in a directory, made for the problem in another."""

    def __init__(
        self, folder: Path | str, problem: Path | None = None, learner: str | LearnerBase = "ucpd-practical",
        address: Address | None = None, **options: Any,
    ) -> None:  # fmt: skip
        new = None
        if problem is not None:
            loaded = load_problem(problem)
            champion = make_learner(learner, loaded, episodes=1000) if isinstance(learner, str) else learner
            new = NewLearner(folder, loaded, champion)
        self.server = Server(folder, address or Address(), new, **options)
        [self.name] = self.server.learners if isinstance(folder, str) else [folder.name]
        self.raised: list[Exception] = []
        self.authorization = ""
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.server.run()
        except Exception as error:
            self.raised.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        while self._thread.is_alive():
            try:
                if self._opened():
                    break
            except ConnectionError:  # it ends
                continue
        return self

    def _opened(self) -> bool:
        return self.get("/ready").status == 200

    def __exit__(self, *error: object) -> None:
        self.server.stop()
        self._thread.join()

    def connect(self) -> HTTPConnection:
        return HTTPConnection(urlsplit(self.server.address).netloc, timeout=600)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Authorization": self.authorization} if self.authorization else {}
        given |= {} if data is None else {"Content-Type": "application/json"}
        with closing(connection):
            connection.request(method, path, data, given | headers)
            answer = connection.getresponse()
            text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        is_json = "json" in found.get("content-type", "")
        return Answer(answer.status, json.loads(text) if is_json else text.decode(), found)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def of(self, place: str) -> Any:
        """Return the body of a GET below the learner."""
        answer = self.get(f"/learners/{quote(self.name)}{place}")
        assert answer.status == 200, answer
        return answer.body

    def ask(self) -> str:
        answer = self.send("POST", f"/learners/{self.name}/ask")
        assert answer.status == 200, answer
        return str(answer.body["episode"])

    def tell(self, episode: str, told: Any) -> Answer:
        return self.send("POST", f"/learners/{self.name}/episodes/{episode}/tell", told)
