"""A trace with secrets in every place where metadata can be; none of SECRETS may stand in a redacted file."""

from __future__ import annotations

import json
from typing import Any

import kineto_documents as documents

TOKEN = "hf_" + "QwErTyUiOpAsDfGhJkLz"
SECRETS = (
    TOKEN,
    "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "hunter2-of-the-environment",
    "s3cr3t-of-a-command-line",
    "Pa55-of-a-url",
    "value-of-a-nested-text",
    "key-of-an-argument",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "alicetheuser",
    "bobwindows",
    "gpu-node-17.cluster",
    "alice@example.org",
    "value-of-a-list",
    "bearerABCDEFGHIJKL",
    "81726354",  # a numeric password
)

ENVIRONMENT = {
    "PATH": "/usr/bin",
    "HOME": "/home/alicetheuser",
    "USER": "alicetheuser",
    "HOSTNAME": "gpu-node-17.cluster",
    "HF_TOKEN": TOKEN,
    "MY_SETTING": "hunter2-of-the-environment",
}
STACK = (
    "/home/alicetheuser/project/train.py(3): main;C:\\Users\\bobwindows\\lib.py(4): f;"
    "/scratch/alicetheuser/x.py(5): g"
)


def top() -> dict[str, Any]:
    """The keys beside the events."""
    return {
        "env": dict(ENVIRONMENT),
        "run_info": {"vars": dict(ENVIRONMENT), "steps": 3, "num_tokens": 128, "tokenizer": "bpe"},
        "argv": ["train.py", "--epochs", "3", "--hf-token", "s3cr3t-of-a-command-line"],
        "launch": "python train.py --api-key=s3cr3t-of-a-command-line --lr 0.1",
        "environment_lines": [f"{key}={value}" for key, value in ENVIRONMENT.items()] + ["X=value-of-a-list"],
        "config": json.dumps({"optimizer": "adam", "env": ENVIRONMENT, "password": "value-of-a-nested-text"}),
        "repository": "https://alice:Pa55-of-a-url@github.com/team/project.git",
        "headers": "Authorization: Bearer bearerABCDEFGHIJKL",
        "aws": {"access_key_id": SECRETS[7], "region": "eu-west-1", "password": 81726354},
        "contact": "written by alice@example.org",
        "host_name": "gpu-node-17.cluster",
        "distributedInfo": {
            "backend": "nccl",
            "rank": 0,
            "world_size": 2,
            "master_addr": "gpu-node-17.cluster",
        },
        "pip_packages": ["tiktoken==0.9.0", "torch==2.6.0"],
    }


def events() -> list[dict[str, Any]]:
    """Events with secrets in their names and arguments, and others without."""
    metadata = {"ph": "M", "ts": 0, "pid": documents.PID, "tid": 0}
    return [
        {**metadata, "name": "process_name", "args": {"name": "python"}},
        {**metadata, "name": "process_labels", "args": {"labels": "CPU"}},
        {**metadata, "name": "job_environment", "args": dict(ENVIRONMENT)},
        {**metadata, "name": "job", "args": {"token": SECRETS[1], "queue": "short"}},
        documents.event("ProfilerStep#1", 1000.0, 100.5, cat="user_annotation"),
        documents.event("aten::mm", 1010.0, 20.25, **{"Call stack": STACK, "Input Dims": [[2, 3], [3, 4]]}),
        documents.event("/home/alicetheuser/project/train.py(3): main", 1000.0, 90, cat="python_function"),
        documents.event("upload --token " + SECRETS[1], 1040.0, 2, api_key="key-of-an-argument"),
        documents.event("on gpu-node-17.cluster", 1050.0, 2, **{"Concrete Inputs": ["[1, 2]", '["a"]']}),
        documents.event("the token is fine, 12 tokens=7", 1060.0, 2, tokens=7, max_token=5),
    ]


def document() -> dict[str, Any]:
    """The whole trace."""
    return documents.document(events(), **top())


def leaks(text: str) -> list[str]:
    """The secrets that a text holds."""
    return [secret for secret in SECRETS if secret in text]
