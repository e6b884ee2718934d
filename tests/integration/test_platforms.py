"""What only some systems or installations have is used where it is there, and not missed elsewhere."""

import mmap
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from skadmm.backends import files
from skadmm.io import cache
from skadmm.run import memory


def test_advice_is_given_only_where_the_system_takes_it(monkeypatch):
    with mmap.mmap(-1, mmap.PAGESIZE) as mapping:
        assert files._advise(mapping, "MADV_WILLNEED", 0, mmap.PAGESIZE) == hasattr(mapping, "madvise")
        monkeypatch.delattr(mmap, "MADV_WILLNEED", raising=False)
        assert not files._advise(mapping, "MADV_WILLNEED", 0, mmap.PAGESIZE)
    assert not files._advise(SimpleNamespace(), "MADV_DONTNEED")


def test_the_cache_folder_is_the_systems_where_platformdirs_knows_it(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    known = SimpleNamespace(user_cache_path=lambda name, appauthor: tmp_path / name)
    monkeypatch.setitem(sys.modules, "platformdirs", known)
    assert cache.cache_folder("data") == tmp_path / "skadmm" / "data"
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if sys.platform != "win32":
        assert cache.cache_folder("data") == tmp_path / ".cache" / "skadmm" / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "chosen"))
    monkeypatch.setitem(sys.modules, "platformdirs", known)
    assert cache.cache_folder("data") == tmp_path / "chosen" / "skadmm" / "data"
    monkeypatch.setenv("SKADMM_CACHE", str(tmp_path / "mine"))
    assert cache.cache_folder("data") == tmp_path / "mine" / "data"


def test_free_memory_comes_from_psutil_where_it_is_installed(monkeypatch):
    told = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=12_345))
    monkeypatch.setitem(sys.modules, "psutil", told)
    assert memory._free() == 12_345
    monkeypatch.setitem(sys.modules, "psutil", None)
    if not Path("/proc/meminfo").exists():
        pytest.skip("this system says it in another way")
    assert 1e6 < memory._free() < 1e15
