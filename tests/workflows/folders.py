"""Folders to stand in."""

import pytest

from workflows.shelf import PICKLED, fill


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Return a folder of good and bad files."""
    root = tmp_path_factory.mktemp("shelf")
    fill(root)
    return root


@pytest.fixture
def on_shelf(shelf, monkeypatch):
    """Stand in the folder of files, so that their names are short."""
    monkeypatch.chdir(shelf)
    yield shelf
    assert not PICKLED.exists()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
