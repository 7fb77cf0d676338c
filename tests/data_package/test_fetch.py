"""The download, against a server on this machine."""

import hashlib
import io
import re
import stat
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from spacql.data import fetch as module
from spacql.data import load_dataset
from spacql.data.fetch import download, extract, fetch
from spacql.data.formats.vault import export_vault
from spacql.errors import DataError, InputError

from .toy import build


class Server:
    """Serves one file, and misbehaves as told."""

    def __init__(self):
        self.content = b""
        self.break_after: list[int] = []  # bytes after which each next answer breaks off
        self.etag = '"one"'
        self.linked: str | None = None  # sent with a redirect, as Hugging Face does
        self.asked: list[str | None] = []  # the Range header of every request
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/missing.zip":
                    return self.send_error(404)
                if self.path == "/redirect.zip":
                    self.send_response(302)
                    self.send_header("Location", "/file.zip")
                    self.send_header("X-Linked-ETag", f'"{server.linked}"')
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                asked = self.headers.get("Range")
                server.asked.append(asked)
                start = 0
                if asked and self.headers.get("If-Range") == server.etag:
                    start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
                body = server.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", server.etag)
                self.end_headers()
                if server.break_after:
                    body = body[: server.break_after.pop(0)]
                self.wfile.write(body)
                return None

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/file.zip"

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(timeout=10)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 5)
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="module")
def vault_zip(tmp_path_factory):
    """An archive like the published ones: two vaults of one scenario."""
    folder = tmp_path_factory.mktemp("vaults")
    for number, uid in enumerate(("Random", "Expert")):
        dataset = build((25,) * 3, observation_sizes=(5,) * 3, action_sizes=(2,) * 3, seed=number)
        dataset.info["name"] = uid
        export_vault(dataset, folder / f"made-{number}")
        (folder / "simple_spread.vlt").mkdir(exist_ok=True)
        (folder / f"made-{number}" / uid).rename(folder / "simple_spread.vlt" / uid)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted((folder / "simple_spread.vlt").rglob("*")):
            archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_published_archive_becomes_one_dataset_a_vault(server, vault_zip, tmp_path):
    server.content = vault_zip
    folders = fetch("omar/spread", tmp_path / "got", url=server.url)
    assert sorted(folders) == [tmp_path / "got" / "expert", tmp_path / "got" / "random"]
    assert names(tmp_path) == ["got"]
    assert names(tmp_path / "got") == ["expert", "random"]
    dataset = load_dataset(tmp_path / "got" / "random", verify=True)
    original = build((25,) * 3, observation_sizes=(5,) * 3, action_sizes=(2,) * 3)
    assert dataset.n_episodes == 3
    np.testing.assert_array_equal(dataset.observations[1][:25], original.observations[1][:25])


def test_a_transfer_that_breaks_goes_on_where_it_stopped(server, vault_zip, tmp_path):
    server.content, server.break_after = vault_zip, [1000, 500]
    download(server.url, tmp_path / "file.zip", hashlib.sha256(vault_zip).hexdigest())
    assert (tmp_path / "file.zip").read_bytes() == vault_zip
    assert server.asked == [None, "bytes=1000-", "bytes=1500-"]
    assert names(tmp_path) == ["file.zip"]


def test_a_transfer_that_keeps_breaking_keeps_what_came_for_the_next_call(server, tmp_path):
    server.content, server.break_after = bytes(range(256)) * 20, [100, 100, 100]
    with pytest.raises(InputError, match=r"broke off.*300 bytes are kept in .*file\.zip\.part"):
        download(server.url, tmp_path / "file.zip")
    download(server.url, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == server.content
    assert server.asked[-1] == "bytes=300-"


def test_a_file_that_changed_in_between_is_fetched_anew(server, tmp_path):
    server.content, server.break_after = b"a" * 5000, [100, 100, 100]
    with pytest.raises(InputError, match="broke off"):
        download(server.url, tmp_path / "file.zip")
    server.content, server.etag = b"b" * 4000, '"two"'
    download(server.url, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == b"b" * 4000


@pytest.mark.parametrize("who", ["user", "server"])
def test_a_wrong_checksum_is_refused_and_nothing_is_left(server, vault_zip, tmp_path, who):
    server.content, server.linked = vault_zip, "0" * 64
    url = server.url.replace("file.zip", "redirect.zip") if who == "server" else server.url
    with pytest.raises(DataError, match=f"SHA-256 [0-9a-f]{{64}}, not {'0' * 64}"):
        fetch("omar/spread", tmp_path / "got", url=url, sha256="0" * 64 if who == "user" else None)
    assert names(tmp_path) == []


def test_the_checksum_that_the_server_sends_is_compared(server, tmp_path):
    server.content = b"content"
    server.linked = hashlib.sha256(b"content").hexdigest()
    download(server.url.replace("file.zip", "redirect.zip"), tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == b"content"


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "member", ["../escaped", "a/../../escaped", "/escaped", "..\\escaped", "C:escaped", link("a")]
)
def test_an_archive_that_tries_to_leave_its_folder_is_refused(server, tmp_path, member):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("harmless", "x")
        archive.writestr(member, "/etc/passwd")
    server.content = buffer.getvalue()
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(DataError, match=r"(would leave the folder|is a link)\..*removed"):
        fetch("omar/spread", inside / "got", url=server.url)
    assert names(tmp_path) == ["inside"]
    assert names(inside) == []  # what was refused is not used again


def test_what_is_no_zip_or_no_vault_is_refused(server, tmp_path):
    (tmp_path / "x.zip").write_text("hello")
    with pytest.raises(DataError, match="cannot be read: File is not a zip file"):
        extract(tmp_path / "x.zip", tmp_path / "x")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme", "x")
    server.content = buffer.getvalue()
    with pytest.raises(DataError, match="holds no vault"):
        fetch("omar/spread", tmp_path / "got", url=server.url)
    assert names(tmp_path) == ["x.zip"]


def test_mistakes_are_told_before_anything_is_downloaded(server, tmp_path):
    with pytest.raises(InputError, match=r"There is no 'omar/chess'.*omar/spread"):
        fetch("omar/chess", tmp_path / "got")
    with pytest.raises(InputError, match="is no SHA-256"):
        fetch("omar/spread", tmp_path / "got", sha256="abc")
    with pytest.raises(InputError, match="is no web address"):
        fetch("omar/spread", tmp_path / "got", url="file:///etc/passwd")
    with pytest.raises(InputError, match="answered 404"):
        fetch("omar/spread", tmp_path / "got", url=server.url.replace("file", "missing"))
    assert names(tmp_path) == []


def test_a_server_that_cannot_be_reached_gives_a_sentence(server, tmp_path):
    server.close()
    with pytest.raises(InputError, match=r"broke off: .*refused"):
        download(server.url, tmp_path / "file.zip")


def test_an_archive_that_somebody_else_put_there_is_not_touched(server, vault_zip, tmp_path):
    (tmp_path / "got.zip").write_text("mine")
    server.content = b"no archive"
    with pytest.raises(DataError, match="The archive was removed"):
        fetch("omar/spread", tmp_path / "got", url=server.url)
    server.content = vault_zip
    fetch("omar/spread", tmp_path / "got", url=server.url)
    assert (tmp_path / "got.zip").read_text() == "mine"
    assert names(tmp_path) == ["got", "got.zip"]


def test_a_download_with_another_checksum_than_was_given_is_kept(server, tmp_path):
    server.content = b"content"
    download(server.url, tmp_path / "file.zip")
    with pytest.raises(InputError, match="downloaded before, has the SHA-256"):
        download(server.url, tmp_path / "file.zip", "0" * 64)
    assert (tmp_path / "file.zip").read_bytes() == b"content"
