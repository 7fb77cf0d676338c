"""The published vaults from Hugging Face: downloaded, checked, unpacked with care, imported.

No checksum of these files is published apart from the server's own: Hugging Face sends the
SHA-256 of a large file as `X-Linked-ETag`. It guards against a broken transfer, not against a
changed file; for that, pass a checksum you trust.
"""

import http.client
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from spacql.data.arrays import open_zip, refuse_larger
from spacql.errors import DataError, InputError, NoRoom
from spacql.files import new_folder, plain_disk_errors, safe_name, sha256
from spacql.progress import progress

HOST = "https://huggingface.co/datasets/InstaDeepAI/og-marl/resolve/main/prior_work/omar"
SOURCES = {
    "omar/spread": f"{HOST}/mpe/simple_spread.zip",
    "omar/tag": f"{HOST}/mpe/simple_tag.zip",
    "omar/world": f"{HOST}/mpe/simple_world.zip",
    "omar/halfcheetah": f"{HOST}/mamujoco/2halfcheetah.zip",
}
ATTEMPTS = 3  # each goes on where the last one broke off
TIMEOUT = 30  # seconds without a byte
BLOCK = 1 << 20


def fetch(
    name: str, out: Path | str, *, url: str | None = None, sha256: str | None = None
) -> list[Path]:
    """Download a published task and write one dataset folder a vault into the new folder `out`.

    `url` is another place of the same archive, and `sha256` its checksum, if you have one. What
    a broken transfer left is kept beside `out`, and the same call goes on from there.
    """
    if name not in SOURCES:
        raise InputError(f"There is no {name!r} to fetch. Known: {', '.join(SOURCES)}.")
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(f"{sha256!r} is no SHA-256: it has 64 hexadecimal digits.")
    from spacql.data.formats.vault import import_vault, require_tensorstore, vaults_in
    from spacql.data.storage import save_dataset

    require_tensorstore()  # before the download, not after it
    out = Path(out)
    if out.exists():
        raise InputError(f"{out} exists already. Choose another place or remove it first.")
    with plain_disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    archive = out.with_name(f".{out.name}.download.zip")  # nobody else's: it is removed below
    download(url or SOURCES[name], archive, sha256)
    with new_folder(out) as folder:
        unpacked = folder / "vaults"
        try:
            extract(archive, unpacked)
            found = vaults_in(unpacked)
            if not found:
                raise DataError(f"{archive} holds no vault.")
            names = [safe_name(vault.name.lower()) for vault in found]
            if len(set(names)) != len(names) or "vaults" in names:
                names = [safe_name(f"{v.parent.stem}-{v.name}".lower()) for v in found]
            for vault, label in zip(found, names, strict=True):
                save_dataset(import_vault(vault, bounds="clip"), folder / label)
        except NoRoom:
            raise
        except DataError as error:  # else the next attempt would find it and not download again
            archive.unlink(missing_ok=True)
            raise DataError(f"{error} The archive was removed.") from error
        shutil.rmtree(unpacked)
    archive.unlink()
    return [out / label for label in names]


def download(url: str, file: Path, expected: str | None = None) -> None:
    """Download to `file`, by way of `file.part`, which a later call continues."""
    if not re.fullmatch(r"https?://[!-~]+", url):
        raise InputError(
            f"{url!r} is no web address: it begins with http:// or https://, and blanks and "
            "letters beyond ASCII are written as %20 and so on."
        )
    if file.exists() and not file.is_symlink():
        if expected is not None and (found := sha256(file)) != expected.lower():
            raise InputError(
                f"{file}, which was downloaded before, has the SHA-256 {found}, not "
                f"{expected.lower()}. If you trust yours, remove the file and fetch it again."
            )
        return
    part = file.with_name(f"{file.name}.part")
    for planted in (file, part, _tag(part)):  # a link would be written through
        if planted.is_symlink():
            planted.unlink()
    for attempt in range(ATTEMPTS):
        try:
            server_sum = _transfer(url, part)
            break
        except urllib.error.HTTPError as error:
            raise InputError(f"{url} answered {error.code} {error.reason}.") from error
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS - 1:
                kept = part.stat().st_size if part.exists() else 0
                raise InputError(
                    f"The transfer from {url} broke off: {_reason(error)}. "
                    f"{kept:,} bytes are kept in {part}; the same command goes on from there."
                ) from error
        except ValueError as error:  # what http and urllib say of an address or a header
            raise InputError(f"{url} cannot be fetched: {_reason(error)}.") from error
    _tag(part).unlink(missing_ok=True)
    _verify(part, expected or server_sum)
    part.replace(file)


def _transfer(url: str, part: Path) -> str | None:
    """Fetch what is missing of `part`. Returns the SHA-256 the server names, if it does."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "spacql", "Accept-Encoding": "identity"}
    tag = _tag(part).read_bytes().decode("latin-1") if _tag(part).is_file() else ""
    if have and re.fullmatch(r'"[!-~]{1,200}"', tag):
        # If-Range: a server whose file has changed since sends the whole new one.
        headers |= {"Range": f"bytes={have}-", "If-Range": tag}
    linked = _Linked()
    opener = urllib.request.build_opener(linked, _NoFTP)
    request = urllib.request.Request(url, headers=headers)
    try:
        response = opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        part.unlink()  # the server has less than we do: begin anew
        raise OSError("the server's file is shorter than what was kept") from error
    with response:
        goes_on = response.status == 206
        server_tag = response.headers.get("ETag", "")
        if not server_tag.startswith("W/"):
            _tag(part).write_text(server_tag, encoding="latin-1", errors="replace")
        length = response.headers.get("Content-Length") or ""
        known = re.fullmatch(r"[0-9]{1,18}", length.strip())
        total = int(length) + (have if goes_on else 0) if known else 0
        with (
            open(part, "ab" if goes_on else "wb") as file,
            progress(part.name.removesuffix(".part"), max(total, 1)) as advance,
        ):
            if goes_on:
                advance(have)
            _copy(response, file, advance if total else lambda amount: None)
    if total and part.stat().st_size != total:
        raise OSError(f"{part.stat().st_size:,} of {total:,} bytes came")
    return linked.sha256 or _as_sha256(response.headers)


def _copy(response: Any, file: IO[bytes], advance: Any) -> None:
    while block := response.read(BLOCK):
        file.write(block)
        advance(len(block))


class _NoFTP(urllib.request.FTPHandler):
    """The web alone, also after a redirect."""

    def ftp_open(self, req: Any) -> Any:
        raise urllib.error.URLError(f"{req.full_url} is no web address")


class _Linked(urllib.request.HTTPRedirectHandler):
    """Notes the checksum that Hugging Face sends with the redirect to its storage."""

    sha256: str | None = None

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
    ) -> Any:
        self.sha256 = self.sha256 or _as_sha256(headers)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _as_sha256(headers: Any) -> str | None:
    for name in ("X-Linked-ETag", "ETag"):
        value = str(headers.get(name, "")).strip('"')
        if re.fullmatch("[0-9a-f]{64}", value):
            return value
    return None


def _verify(file: Path, expected: str | None) -> None:
    if expected is not None and (found := sha256(file)) != expected.lower():
        file.unlink()
        raise DataError(
            f"What was downloaded has the SHA-256 {found}, not {expected.lower()}. It was removed."
        )


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or str(error) or type(error).__name__
    return str(reason)


def extract(archive: Path, folder: Path) -> None:
    """Unpack a zip file into a new folder. `open_zip` says what is refused."""
    with open_zip(archive) as opened:
        size = sum(member.file_size for member in opened.infolist())
        folder.mkdir(parents=True)
        refuse_larger(archive, size, shutil.disk_usage(folder).free, "the disk")
        opened.extractall(folder)
