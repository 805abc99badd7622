"""Files on disk: whole or not there, whatever happens while they are written."""

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tensorlace import ModelFileError, load, save
from tests.helpers.model_files import N


def test_paths_that_cannot_be_read(tmp_path, data):
    with pytest.raises(ModelFileError, match="No such file"):
        load(tmp_path / "missing.tlace")
    with pytest.raises(ModelFileError, match="Is a directory"):
        load(tmp_path)
    with pytest.raises(ModelFileError, match="null"):
        load("a\0b")
    with pytest.raises(ModelFileError, match="is not a file"):
        load("/dev/zero")
    with pytest.raises(TypeError):
        load(0)  # not standard input
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ModelFileError, match="symbolic links"):
        load(tmp_path / "loop")
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "link").symlink_to("file")
    assert load(tmp_path / "link").n_rows_ == N


def test_paths_that_cannot_be_written(tmp_path, model, data):
    with pytest.raises(ModelFileError, match="it is a directory"):
        save(model, tmp_path)
    with pytest.raises(ModelFileError, match="cannot be written: No such file"):
        save(model, tmp_path / "no" / "where.tlace")
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ModelFileError, match="cannot be written: Not a directory"):
        save(model, tmp_path / "file" / "where.tlace")
    with pytest.raises(ModelFileError, match="cannot be written: File name too long"):
        save(model, tmp_path / ("a" * 300))
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_a_link(tmp_path, model):
    (tmp_path / "deep").mkdir()
    link, target = tmp_path / "link.tlace", tmp_path / "deep" / "target.tlace"
    link.symlink_to(target)
    save(model, link)
    assert link.is_symlink()
    assert load(target).n_rows_ == N
    assert sorted(os.listdir(tmp_path)) == ["deep", "link.tlace"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(call, tmp_path, model, data, monkeypatch):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.file.close()

        write = full

    if call == "write":
        real = open
        monkeypatch.setattr("tensorlace._atomic.open", lambda *a: Full(real(*a)), raising=False)
    else:
        monkeypatch.setattr(os, call, full)
    with pytest.raises(ModelFileError, match="cannot be written: No space left on device"):
        save(model, path)
    monkeypatch.undo()
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["model.tlace"]


FULL = textwrap.dedent("""
    import os, sys
    import numpy as np
    from tensorlace import ModelFileError, TNKMRegressor, load, save

    path = os.path.join(sys.argv[1], "model.tlace")
    X = np.random.default_rng(0).uniform(size=(60, 2))
    how = {"max_sweeps": 2, "tol": 1.0, "random_state": 0}
    small = TNKMRegressor(rank=1, n_basis=3, **how).fit(X, X[:, 0])
    large = TNKMRegressor(rank=8, n_basis=12, **how).fit(X, X[:, 0])
    save(small, path)
    before = open(path, "rb").read()
    for _ in range(3):
        try:
            save(large, path)
        except ModelFileError as error:
            print(error)
        assert open(path, "rb").read() == before
        assert os.listdir(sys.argv[1]) == ["model.tlace"]
    assert load(path).predict(X).tobytes() == small.predict(X).tobytes()
""")


def test_a_disk_that_is_really_full(tmp_path):
    """A file system in memory of 64 KiB, seen by one process only."""
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && "$@"']
    try:
        subprocess.run([*mount, tmp_path, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    words = [*mount, tmp_path, sys.executable, "-W", "ignore", "-c", FULL, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("cannot be written: No space left on device") for line in lines)


KILLS = textwrap.dedent("""
    import os, random, resource, signal, sys, time
    from pathlib import Path
    import numpy as np
    from tensorlace import TNKMRegressor, load, save
    from tensorlace._atomic import write_atomically

    folder = sys.argv[1]
    path = os.path.join(folder, "model.tlace")
    X = np.random.default_rng(0).uniform(size=(50, 2))
    models = [
        TNKMRegressor(rank=r, n_basis=3, max_sweeps=2, random_state=r, tol=1.0).fit(X, X[:, 0] * r)
        for r in (1, 2)
    ]
    whole = set()
    for model in models:
        save(model, path)
        whole.add(open(path, "rb").read())
    assert len(whole) == 2

    def child(work):
        pid = os.fork()
        if pid == 0:
            try:
                work()
                os._exit(0)
            except BaseException as error:
                print(type(error).__name__, error)
                sys.stdout.flush()
                os._exit(1)
        return pid

    started, ready = os.pipe()

    def forever():
        os.write(ready, b".")
        while True:
            for data in whole:  # the part of `save` that touches the disk
                write_atomically(Path(path), data)

    random.seed(0)
    for _ in range(200):
        pid = child(forever)
        os.read(started, 1)
        time.sleep(random.uniform(0.0, 0.004))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        with open(path, "rb") as file:
            assert file.read() in whole
    load(path)
    save(models[0], path)
    print("killed 200", os.listdir(folder))
    sys.stdout.flush()

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        save(models[1], path)

    def nobody():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        save(models[1], path)

    def unreadable():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        load(path)

    before = open(path, "rb").read()
    os.waitpid(child(limited), 0)
    os.chmod(folder, 0o555)
    os.waitpid(child(nobody), 0)
    os.chmod(path, 0)
    os.waitpid(child(unreadable), 0)
    os.chmod(folder, 0o755)
    os.chmod(path, 0o644)
    assert open(path, "rb").read() == before
    print(os.listdir(folder))
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_during_save_and_errors_of_the_system(tmp_path):
    # directories of pytest are closed to other users; one below the root of temporary files is not
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", KILLS, folder],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    kills, limited, nobody, unreadable, left = done.stdout.splitlines()
    assert kills == "killed 200 ['model.tlace']"
    assert limited.startswith("ModelFileError")
    assert "cannot be written: File too large" in limited
    assert "cannot be written: Permission denied" in nobody
    assert "cannot be read: Permission denied" in unreadable
    assert left == "['model.tlace']"


def test_leftovers_of_the_dead_are_removed(tmp_path, model, monkeypatch):
    path = tmp_path / "model.tlace"
    left = []
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda self, **how: left.append(self))  # as if killed
        patched.setattr(os, "replace", lambda *pair: None)
        save(model, path)
    assert [p.exists() for p in left] == [True]
    save(model, path)  # the process is alive: this may be the work of another thread
    assert sorted(os.listdir(tmp_path)) == sorted([left[0].name, "model.tlace"])
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left[0].rename(left[0].with_name(left[0].name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")))
    save(model, path)
    assert os.listdir(tmp_path) == ["model.tlace"]
