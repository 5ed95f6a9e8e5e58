from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime import fake_target


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The targets `fake` and `broken` are installed; the folder that does it."""
    monkeypatch.delenv("FAKE_TARGET", raising=False)
    folder = fake_target.install(tmp_path_factory.mktemp("site"))
    monkeypatch.syspath_prepend(str(folder))
    return folder
