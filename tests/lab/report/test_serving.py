"""The live page: new content is served, other hosts are refused, nothing is written."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.lab.report.folders import write_study
from tests.lab.report.test_page import embedded
from tightrope import InvalidInputError
from tightrope.lab.report import served


def read(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return str(answer.read().decode())


def test_the_page_follows_the_study(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        assert address.startswith("http://127.0.0.1:")
        assert embedded(read(address))["sections"] == []  # nothing was recorded yet
        write_study(tmp_path, learners=("ucpd",), n_seeds=2, table=False)
        before = set(tmp_path.rglob("*"))
        [section] = json.loads(read(f"{address}content.json"))["sections"]
        assert section["curves"][0]["seeds"] == [0, 1]
        (tmp_path / "runs" / "run-0-0" / "run.json").write_text('{"status": "running"}')
        (tmp_path / "runs" / "run-0-0" / "progress").write_bytes(b"77")
        found = json.loads(read(f"{address}content.json"))["progress"]
        assert found == {"finished": 1, "running": {"run-0-0": 77}, "failed": {}}
        assert set(tmp_path.rglob("*")) - before == {tmp_path / "runs" / "run-0-0" / "progress"}  # ours, above
    with pytest.raises(urllib.error.URLError):  # it ends with the block
        read(address)


def test_other_hosts_and_paths_are_refused(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        for url, headers, code in ((address, {"Host": "example.org"}, 403), (f"{address}../table.csv", {}, 404)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                read(url, **headers)
            assert refused.value.code == code
            refused.value.close()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(address, data=b"x"), timeout=30)
        assert refused.value.code == 501  # nothing can be sent
        refused.value.close()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(InvalidInputError, match=f"cannot listen on port {port}: .*--port"), served(tmp_path, port):
            pass
