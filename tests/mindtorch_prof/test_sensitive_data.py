"""Sensitive data: what is found in metadata and texts, and that nothing else changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import planted_secrets as planted
import pytest

from mindtorch_prof.json_types import JSONObject
from mindtorch_prof.sensitive_data import (
    holds_secret,
    is_environment,
    kind_of_key,
    redacted,
    secrets_in,
    without_environment,
)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("env", "environment"),
        ("os.environ", "environment"),
        ("environment_variables", "environment"),
        ("HF_TOKEN", "secret"),
        ("apiKey", "secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("sys.argv", "command line"),
        ("host_name", "host name"),
        ("USER", "user name"),
        ("num_tokens", None),
        ("tokenizer", None),
        ("External id", None),
        ("Process Group Name", None),
        ("Addr", None),
        ("keys", None),
        ("nodes", None),
    ],
)
def test_keys_say_what_they_hold(key: str, kind: str | None) -> None:
    assert kind_of_key(key) == kind


def test_environments_are_known_by_their_variables() -> None:
    assert is_environment(planted.ENVIRONMENT)
    assert is_environment([f"{key}={value}" for key, value in planted.ENVIRONMENT.items()])
    assert not is_environment({"ph": "X", "cat": "cpu_op", "name": "aten::mm"})
    assert not is_environment({"RANK": 0, "WORLD_SIZE": 8, "STEP": 3})
    release = "NAME ID PRETTY_NAME VERSION_ID VERSION ID_LIKE HOME_URL SUPPORT_URL".split()
    assert not is_environment(dict.fromkeys(release, "Ubuntu"))
    assert not is_environment(["lr=0.1", "epochs=3", "seed=1"])


@pytest.mark.parametrize(
    "text", ["the token is fine", "tiktoken==0.9.0", "max_token=5", "aten::mm", "Basic block", "key = value"]
)
def test_ordinary_texts_are_no_secrets(text: str) -> None:
    assert not holds_secret(text)


def test_metadata_loses_environments_and_secrets_and_nothing_else() -> None:
    kept, dropped = without_environment(planted.top())
    text = json.dumps(
        {key: value for key, value in kept.items() if key not in ("host_name", "distributedInfo", "contact")}
    )
    assert planted.leaks(text) == []
    assert kept["run_info"] == {"steps": 3, "num_tokens": 128, "tokenizer": "bpe"}
    assert kept["pip_packages"] == planted.top()["pip_packages"]
    assert kept["aws"] == {"region": "eu-west-1"}
    assert {"env", "run_info.vars", "argv", "launch", "config", "repository"} <= set(dropped)


def test_metadata_without_secrets_stays() -> None:
    metadata: JSONObject = {"schemaVersion": 1, "with_stack": 1, "model": {"tokens": 5, "name": "gpt"}}
    assert without_environment(metadata) == (metadata, [])
    assert secrets_in(metadata) == ([], [])


def test_secrets_are_found_until_they_are_redacted() -> None:
    secrets, environments = secrets_in(planted.top())
    assert {"env.HF_TOKEN", "aws.access_key_id", "launch"} <= set(secrets)
    assert {"env", "run_info.vars", "argv", "environment_lines"} <= set(environments)
    clean = json.loads(redacted(json.dumps(planted.top()))[0])
    assert secrets_in(clean) == ([], [])


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii", [True, False])
def test_no_secret_is_left_in_any_place(indent: int | None, ascii: bool) -> None:
    text = json.dumps(planted.document(), indent=indent, ensure_ascii=ascii)
    assert planted.leaks(text.replace("\\\\", "\\")) == list(planted.SECRETS)
    clean, counts = redacted(text)
    assert planted.leaks(clean) == []
    assert set(counts) >= {"environment", "secret", "command line", "user name", "host name"}
    assert redacted(clean)[0] == clean


def test_only_strings_change_and_only_those_with_secrets() -> None:
    text = json.dumps(planted.document(), indent=1)
    clean, _ = redacted(text)
    outside = [re.sub(r'"(?:[^"\\]|\\.)*"|81726354', '""', each) for each in (text, clean)]
    assert outside[0] == outside[1]
    before, after = (json.loads(each) for each in (text, clean))
    for old, new in zip(before["traceEvents"], after["traceEvents"]):
        if not planted.leaks(json.dumps(old).replace("\\\\", "\\")):
            assert json.dumps(old) == json.dumps(new)
        assert {k: v for k, v in old.items() if k not in ("name", "args")} == {
            k: v for k, v in new.items() if k not in ("name", "args")
        }
    assert after["traceEvents"][5]["args"]["Call stack"] == (
        "/home/REDACTED/project/train.py(3): main;C:\\Users\\REDACTED\\lib.py(4): f;"
        "/scratch/REDACTED/x.py(5): g"
    )
    assert after["run_info"]["num_tokens"] == 128


def test_a_text_that_is_cut_is_redacted_as_far_as_it_goes() -> None:
    text = json.dumps(planted.document())
    for length in range(0, len(text), 97):
        clean = redacted(text[:length])[0]
        whole = re.findall(r'"(?:[^"\\]|\\.)*"', clean)
        assert planted.leaks(" ".join(whole)) == []


def test_recorded_traces_lose_their_environment_and_keep_every_event(ecosystem: Path) -> None:
    import gzip

    path = ecosystem / "traces" / "h100_qwen_infer_stack_memory.json.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    clean, counts = redacted(text)
    before, after = orjson.loads(text), orjson.loads(clean)
    assert before["traceEvents"] == after["traceEvents"]
    assert counts["environment"] >= 60
    assert set(after["metadata"]["system"]["env"].values()) == {"REDACTED"}
    assert after["metadata"]["system"]["uname"]["node"] == "REDACTED"
    assert after["metadata"]["system"]["pip_packages"] == before["metadata"]["system"]["pip_packages"]


def test_the_user_goes_from_the_stacks_of_a_recorded_trace(ecosystem: Path) -> None:
    import gzip

    path = ecosystem / "traces" / "v100_resnet50_train_2021.pt.trace.json.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    clean, _ = redacted(text)
    assert "/home/yangu/" in text
    assert "yangu" not in clean
    assert clean == text.replace("/home/yangu/", "/home/REDACTED/")
