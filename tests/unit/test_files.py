"""Files are there whole or not at all."""

import errno
import fcntl
import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from fairseq_syntax.files import link_or_copy, named, refuse_existing, staged, staged_bytes, staged_directory, written


def test_a_file_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "x.png"
    with staged(path) as partial:
        partial.write_text("a")
        assert partial.parent == path.parent and partial.suffix == ".png" and not path.exists()
    assert [(p.name, p.read_text()) for p in path.parent.iterdir()] == [("x.png", "a")]


@pytest.mark.parametrize("written", [True, False])
def test_an_error_leaves_what_was_there(tmp_path, written):
    (tmp_path / "x").write_text("old")
    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "x") as partial:
        if written:
            partial.write_text("half")
        raise KeyboardInterrupt
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "old")]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_has_the_name_of_the_file(tmp_path, code):
    for writing, name in ((staged, "a.txt"), (staged_directory, "folder"), (named, "b")):
        with pytest.raises(OSError, match=name) as error, writing(tmp_path / name):
            raise OSError(code, os.strerror(code))
        assert (error.value.filename, error.value.errno) == (str(tmp_path / name), code)
    assert not list(tmp_path.iterdir())


def test_several_may_write_one_file(tmp_path):
    with ExitStack() as stack:
        partials = [stack.enter_context(staged(tmp_path / "x")) for _ in range(3)]
        assert len(set(partials)) == 3
        for number, partial in enumerate(partials):
            partial.write_text(str(number))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "0")]  # the first to begin ends last


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays(tmp_path, there):
    target, link = tmp_path / "target", tmp_path / "link.gz"
    link.symlink_to(target)
    if there:
        target.touch()
    with staged_bytes(link) as file:
        file.write(b"text")
    assert link.is_symlink() and gzip.decompress(target.read_bytes()) == b"text"
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_fifo_is_written_to(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    refuse_existing([path], overwrite=False)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(path.read_text)
        with written(str(path)) as file:
            file.write("text")
        assert read.result(9) == "text"
    assert path.is_fifo() and sorted(tmp_path.iterdir()) == [path]


def test_the_same_content_is_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz", "c"):
        with staged_bytes(tmp_path / name) as file:
            file.write(b"text")
    packed = (tmp_path / "a.gz").read_bytes()
    assert packed == (tmp_path / "b.gz").read_bytes() and gzip.decompress(packed) == b"text"
    assert packed[4:8] == b"\0" * 4  # no time, or it is another second later
    assert (tmp_path / "c").read_bytes() == b"text"


def test_names_of_output_are_looked_at_first(tmp_path, monkeypatch):
    path = tmp_path / "x"
    refuse_existing([path, None, None, "-"], overwrite=False)
    for twice in (path, "-"):
        with pytest.raises(ValueError, match="two outputs have this name"):
            refuse_existing([twice, None, str(twice)], overwrite=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"\./x: two outputs have this name"):
        refuse_existing(["./x", "x"], overwrite=True)
    path.touch()
    refuse_existing([path], overwrite=True)
    with pytest.raises(FileExistsError, match="give --overwrite"):
        refuse_existing([path], overwrite=False)


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    final = tmp_path / "deep" / "x"
    with staged_directory(final) as new:
        (new / "a").write_text("1")
        assert not final.exists()
    (final / "sub").mkdir()
    (final / "sub" / "b").write_text("2")
    (final / "link").symlink_to("sub")
    final.chmod(0o750)
    (tmp_path / "name").symlink_to(final)
    with staged_directory(tmp_path / "name") as new:
        for name in ("sub", "link"):
            link_or_copy(final / name, new / name)
    assert sorted(path.name for path in final.iterdir()) == ["link", "sub"]
    assert (tmp_path / "name").is_symlink() and (final / "link").is_symlink()
    assert (final / "link" / "b").read_text() == "2" and final.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in final.parent.iterdir()] == ["x"]


def test_an_old_folder_is_there_after_an_error_and_a_second_writer_is_refused(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(KeyboardInterrupt), staged_directory(tmp_path / "x") as new:
        (new / "a").touch()
        with pytest.raises(BlockingIOError, match="x: another process is writing it"), staged_directory(tmp_path / "x"):
            pass
        assert (new / "a").exists()
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.rglob("*")] == ["x"]


def test_a_folder_that_cannot_be_renamed_is_refused(tmp_path, monkeypatch):
    (tmp_path / "x" / "below").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path / "x" / "below")
        with pytest.raises(ValueError, match="current folder"), staged_directory(tmp_path / "x"):
            pass
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "x")
    with pytest.raises(ValueError, match="mount points"), staged_directory(tmp_path / "x"):
        pass


def test_a_file_system_without_hard_links_or_locks(tmp_path, monkeypatch):
    def missing(*args, **kwargs):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "link", missing)
    monkeypatch.setattr(fcntl, "flock", missing)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_text("1")
    with staged_directory(tmp_path / "x") as new:
        link_or_copy(tmp_path / "x" / "a", new / "a")
    assert (tmp_path / "x" / "a").read_text() == "1"
