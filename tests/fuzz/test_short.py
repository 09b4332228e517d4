"""The tester's short form: some of each trial."""

import random

import pytest

from fuzz.disks import try_full_disks
from fuzz.inputs import try_files, try_stores
from fuzz.judge import Tally
from fuzz.kernels import try_kernels
from fuzz.products import try_products
from fuzz.requests import try_requests


@pytest.mark.sweep
def test_a_little_of_everything(tmp_path, monkeypatch, drawn_seed):
    monkeypatch.chdir(tmp_path)
    rng, tally = random.Random(drawn_seed), Tally()
    try_files(tally, tmp_path, rng, 4)
    try_stores(tally, tmp_path, rng, 6)
    try_requests(tally, tmp_path, rng, 12)
    try_products(tally, rng, 4)
    try_kernels(tally, rng, 4)
    try_full_disks(tally, tmp_path, rng, 2)
    assert tally.failed == {}, "\n".join(tally.lines)
    assert all(count for count in tally.tried.values())
