"""The local server: which requests it refuses, and the questions that it puts."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmaformal.site.jobs import RUNNING, WAITING, AskedJob, JobRefusedError, Jobs, Served
from mmaformal.site.serve import KEEP, MOST, SiteServer, server

LONG = {"kind": "prove", "property": "error-bound", "x": "hopper HMMA.16816.F32", "timeout": 600}
DESIGN = "'my dot.sv' --top dot"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[SiteServer]:
    (tmp_path / "index.html").write_text("<p>here</p>")
    with server(tmp_path) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def asked(serving: SiteServer, path: str, body: object = None, **headers: str) -> tuple[int, str]:
    """Status and text of an answer; with a body, to a question as the server's own page sends it."""
    host = f"127.0.0.1:{serving.server_address[1]}"
    connection = http.client.HTTPConnection(host, timeout=30)
    given = {"Host": host}
    text = None
    if body is not None:
        text = body if isinstance(body, str) else json.dumps(body)
        given |= {"Origin": f"http://{host}", "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, text, given)
    answer = connection.getresponse()
    told = answer.status, answer.read().decode()
    connection.close()
    return told


def test_it_answers_for_this_machine_alone(serving: SiteServer) -> None:
    assert asked(serving, "/") == (200, "<p>here</p>")
    for path, body in (("/", None), ("/api/jobs", None), ("/api/jobs", LONG)):
        assert asked(serving, path, body, Host="evil.example:8000")[0] == 421
    assert asked(serving, "/../../etc/passwd")[0] == 404
    assert serving.server_address[0] == "127.0.0.1"


def test_packages_are_kept_by_browsers_and_pages_are_not(serving: SiteServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", serving.server_address[1], timeout=30)
    kept = {}
    for path in ("/", "/pyodide/pyodide.asm.wasm"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        kept[path] = answer.headers["Cache-Control"]
    connection.close()
    assert kept == {"/": "no-cache", "/pyodide/pyodide.asm.wasm": KEEP}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 400),  # what a form of another site may send
        ({"Content_Length": str(MOST + 1)}, 400),
        ({"Content_Length": "-1"}, 400),
    ],
)
def test_questions_of_other_sites_are_refused(
    serving: SiteServer, headers: dict[str, str], status: int
) -> None:
    assert asked(serving, "/api/jobs", LONG, **headers)[0] == status
    assert serving.jobs.listed() == []


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "record"},
        {"kind": "diff", "x": "hopper HMMA.16816.F32"},
        {"kind": "diff", "x": "--model evil.py:x", "y": "hopper HMMA.16816.F32"},
        {"kind": "prove", "property": "--smtlib", "x": "hopper HMMA.16816.F32"},
        {**LONG, "timeout": 601},
        {**LONG, "timeout": True},
        {"kind": "check", "recording": "/etc/passwd"},
        {"kind": "signoff", "design": "other.sv", "x": "hopper HMMA.16816.F32"},
        [],
        "no JSON",
    ],
)
def test_what_is_no_question_is_refused(serving: SiteServer, question: object) -> None:
    status, text = asked(serving, "/api/jobs", question)
    assert status == 400
    assert json.loads(text)["error"]
    assert asked(serving, "/api/else", {})[0] == 404
    assert serving.jobs.listed() == []


def test_a_unit_is_evaluated(serving: SiteServer) -> None:
    question = {"units": ["hopper HMMA.16816.F32"], "a": ["1"], "b": ["1"], "c": ["2"]}
    status, text = asked(serving, "/api/evaluate", question)
    assert (status, json.loads(text)["units"][0]["code"]) == (200, "0x40400000")


def test_commands_are_made_of_known_names() -> None:
    served = Served(["own.py:acme"], [Path("here") / "rows.npz"], [DESIGN])
    title, command = served.command(
        {"kind": "diff", "x": "volta HMMA.884.F32.F32", "y": "hopper HMMA.16816.F32"}
    )
    assert title == "volta HMMA.884.F32.F32 and hopper HMMA.16816.F32"
    where = ["--k", "16", "volta", "hopper", "HMMA.884.F32.F32", "HMMA.16816.F32"]
    assert command == ["diff", "--model", "own.py:acme", "--timeout", "60", *where]
    signed = served.command(
        {"kind": "signoff", "design": DESIGN, "x": "hopper HMMA.16816.F32", "timeout": 9}
    )[1]
    against = ["--against", "hopper", "HMMA.16816.F32"]
    assert signed == [
        *("signoff", "--model", "own.py:acme", "--timeout", "9"),
        *("my dot.sv", "--top", "dot"),
        *against,
    ]
    assert served.command({"kind": "check", "recording": "rows.npz"})[1][-1] == str(Path("here") / "rows.npz")


def waited(job: AskedJob, *states: str) -> None:
    """Wait until a job has one of these states."""
    end = time.monotonic() + 120
    while job.state not in states:
        assert time.monotonic() < end, job.state
        time.sleep(0.05)


def test_cancelling_ends_the_process_and_what_waits_goes_on() -> None:
    jobs = Jobs(Served())
    some = [jobs.start(LONG) for _ in range(RUNNING + 1)]
    assert [each.state for each in some] == ["running"] * RUNNING + ["waiting"]
    while some[0].process is None:
        time.sleep(0.05)
    process = some[0].process
    jobs.cancel(some[0].number)
    assert process.wait(30) != 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    waited(some[-1], "running")
    for _ in range(WAITING):
        jobs.start(LONG)
    with pytest.raises(JobRefusedError, match="already"):
        jobs.start(LONG)
    jobs.close()
    assert {each["state"] for each in jobs.listed()} == {"cancelled"}


def test_a_question_is_answered() -> None:
    jobs = Jobs(Served(recordings=[Path(__file__).parents[2] / "examples" / "bfdot_qemu.npz"]))
    job = jobs.start({"kind": "check", "recording": "bfdot_qemu.npz"})
    waited(job, "done")
    assert job.status == 0, job.output
    assert "bfdot_qemu.npz" in job.output
    jobs.close()
