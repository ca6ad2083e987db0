"""Where to train: what is not there is said before anything starts, and no script is ever started again."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from featgeo import ModalDecomposition, Training

REFUSED = {
    "no precision": ({"precision": "7-bit"}, r"`precision` must be '32-true', .* got '7-bit'. Use '32-true'"),
    "a number of bits": ({"precision": 16}, "`precision` must be '32-true', "),
    "no accelerator": ({"accelerator": "abacus"}, r"`accelerator` must be 'auto', .* got 'abacus'"),
    "accelerator None": ({"accelerator": None}, "`accelerator` must be 'auto', "),
    "no devices": ({"devices": 0}, "`devices` must be how many"),
    "fewer than all devices": ({"devices": -2}, "`devices` must be how many"),
    "devices True": ({"devices": True}, "`devices` must be how many"),
    "half a device": ({"devices": 1.5}, "`devices` must be how many"),
    "a list of none": ({"devices": []}, "`devices` must be how many"),
    "devices by name": ({"devices": "all of them"}, "`devices` must be how many"),
    "a checkpoint that is no path": ({"checkpoint": 5}, "`checkpoint` must be the path of a folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_are_none_are_refused_at_once(case):
    options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        Training(**options)


def _fit(**options):
    x = np.random.default_rng(0).standard_normal(100)
    return ModalDecomposition(1, solver="neural", training=Training(max_epochs=1, **options)).fit(x, x + x**2)


@pytest.mark.skipif(torch.cuda.is_available() or torch.backends.mps.is_available(), reason="there is one")
@pytest.mark.parametrize("name", ["gpu", "cuda", "mps"])
def test_an_absent_accelerator_is_said(name):
    with pytest.raises(ValueError, match=rf"devices that are there .*'accelerator': '{name}'.* Leave them out"):
        _fit(accelerator=name)


def test_a_checkpoint_folder_that_cannot_be_made_is_said():
    with pytest.raises(OSError, match=r"must be one that is there or can be made, and '/proc/nope' cannot"):
        _fit(checkpoint="/proc/nope")


SCRIPT = """
import sys
import numpy as np
from featgeo import ModalDecomposition, Training
open(sys.argv[1], "a").write("started\\n")
x = np.random.default_rng(0).standard_normal(100)
training = Training(max_epochs=1, devices=2, accelerator="cpu")
ModalDecomposition(1, solver="neural", training=training).fit(x, x)
"""


def test_two_devices_do_not_start_the_script_again(tmp_path):
    """As a script, because it would be the script that is started again."""
    with pytest.raises(ValueError, match=r"takes 2 processes, .*torchrun --nproc_per_node=2 script.py"):
        _fit(devices=2, accelerator="cpu")
    (tmp_path / "script.py").write_text(SCRIPT)
    log = tmp_path / "log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(tmp_path / "script.py"), str(log)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert "takes 2 processes" in run.stderr
    assert log.read_text() == "started\n"
