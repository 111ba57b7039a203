"""Gather the root of an image: `python3 runtime.py BASE OWN [--program=PATH ...] VENV`.

In: the build stage's own system, a virtualenv made of its Python, more programs (dnsmasq, a shell).
Out: BASE, the interpreter with what it needs, the same octets for all three images, so that they share
its layer; OWN, the virtualenv, the programs and the libraries that only these need.

Nothing else is in an image: no shell, no package manager, no setuid file.  Byte code is never checked
against its source, as the root is read-only.  Every file has the time of SOURCE_DATE_EPOCH, so that two
builds of one commit are alike.  For scanners and bills of materials, var/lib/dpkg/status.d says which
Debian packages the files are of, and their copyright files come along.
"""

import argparse
import compileall
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

STDLIB = Path(sysconfig.get_path("stdlib"))
NEVER_IMPORTED = (
    *(
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "test",
        "tkinter",
        "turtledemo",
        "turtle.py",
        "__pycache__",
    ),
    *(
        "config-*",
        "curses",
        "dbm",
        "sqlite3",
        "site-packages",
        "dist-packages",
        "_pyrepl",
        "__phello__",
        "sitecustomize.py",
    ),
)
NEVER_LOADED = re.compile(
    r"(_curses|_dbm|_gdbm|_sqlite3|_test|_tkinter|_xxtest|_xxinter|_ctypes_test|readline|nis|xxlimited|xxsub)"
)
"""Extension modules that would bring libraries of their own."""
SYSTEM_FILES = (
    "/etc/os-release",
    "/usr/lib/os-release",
    "/usr/lib/ssl/cert.pem",
    "/usr/lib/ssl/openssl.cnf",
)
USERS = "root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
USER = "kube-dns:x:1001:1001:kube-dns:/:/usr/sbin/nologin\n"
WRITTEN = {
    "etc/passwd": USERS + USER,
    "etc/group": "root:x:0:\nnogroup:x:65534:\nkube-dns:x:1001:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
FOLDERS = ("dev", "proc", "run", "sys", "tmp", "var/tmp")


class Root:
    """A folder that becomes an image's root; `without` holds what another layer has already."""

    def __init__(self, place: Path, without: "Root | None" = None) -> None:
        self.place = place
        self.taken: set[Path] = set()
        self._without = without.taken if without else set()

    def add(self, path: Path) -> None:
        """Take a file with every link on the way to it."""
        for link in links_to(path):
            if link in self.taken or link in self._without:
                continue
            self.taken.add(link)
            target = self.place / str(link).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(link, target, follow_symlinks=False)

    def add_tree(self, folder: Path, *left_out: str) -> None:
        """Take a folder; patterns name what stays away, at any depth."""
        target = self.place / str(folder.resolve()).lstrip("/")
        shutil.copytree(
            folder, target, symlinks=True, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True
        )
        self.taken.add(folder.resolve())

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.place / name).parent.mkdir(parents=True, exist_ok=True)
        (self.place / name).write_text(text)

    def compile(self, folder: Path) -> None:
        """Make the byte code of a folder of the root."""
        inside = self.place / str(folder.resolve()).lstrip("/")
        compileall.compile_dir(
            inside,
            quiet=2,
            stripdir=str(self.place),
            prependdir="/",
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            workers=1,
        )

    def settle(self, time: int) -> None:
        """Give every file one time, and take rights away that nobody needs."""
        for path in sorted(self.place.rglob("*"), reverse=True):
            if not path.is_symlink():
                mode = stat.S_IMODE(path.lstat().st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
                path.chmod(mode)
            os.utime(path, (time, time), follow_symlinks=False)
        os.utime(self.place, (time, time))


def links_to(path: Path) -> Iterator[Path]:
    """Yield a file by its real folder, and what it points to until that is no link."""
    here = path.parent.resolve() / path.name
    yield here
    while here.is_symlink():
        target = here.parent / here.readlink()
        here = target.parent.resolve() / target.name
        yield here


def libraries_of(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that programs and modules load, the dynamic loader among them."""
    found = set()
    for path in files:
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        found |= {Path(name) for name in re.findall(r"(/\S+) \(0x", listed)}
    return found


def modules_in(folder: Path) -> list[Path]:
    """Return the extension modules below a folder."""
    return sorted(path for path in folder.rglob("*.so*") if path.is_file())


def note_packages(root: Root, files: Iterable[Path]) -> None:
    """Write which Debian packages files are of, as scanners read it, and take their copyright files."""
    names = [f"*/{path.name}" for path in files]
    listed = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True, check=False)
    wanted = {str(path) for path in files} | {re.sub(r"^/usr(?=/)", "", str(path)) for path in files}
    packages = set()
    for line in listed.stdout.splitlines():
        owners, _, path = line.rpartition(": ")
        if path in wanted and not line.startswith("diversion "):
            packages |= {owner.partition(":")[0] for owner in owners.split(", ")}
    for package in sorted(packages):
        status = subprocess.run(
            ["dpkg-query", "--status", package], capture_output=True, text=True, check=True
        )
        root.write(f"var/lib/dpkg/status.d/{package}", status.stdout)
        copyright_file = Path("/usr/share/doc", package, "copyright")
        if copyright_file.exists():
            root.add(copyright_file)


def gather_base(root: Root) -> None:
    """Fill the layer that the images share."""
    interpreter = Path(sys.executable).resolve()
    root.add_tree(STDLIB, *NEVER_IMPORTED)
    modules = root.place / str(STDLIB.resolve()).lstrip("/") / "lib-dynload"
    for path in list(modules.iterdir()):
        if NEVER_LOADED.match(path.name):
            path.unlink()
    root.compile(STDLIB)
    loaded = [interpreter, *(STDLIB / "lib-dynload" / path.name for path in modules.iterdir())]
    links = [interpreter.parent / name for name in ("python3", f"python3.{sys.version_info.minor}")]
    system = [Path(name) for name in SYSTEM_FILES]
    for path in (interpreter, *libraries_of(loaded), *links, *system):
        if path.exists():
            root.add(path)
    furnish(root)
    note_packages(root, [*root.taken, *loaded, STDLIB / "os.py"])


def furnish(root: Root) -> None:
    """Give a root what a system has beside its programs: users, folders, the links of a merged /usr."""
    for name, text in WRITTEN.items():
        root.write(name, text)
    for name in FOLDERS:
        (root.place / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root.place / name).chmod(0o1777)
    (root.place / "var/run").symlink_to("/run")
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path("/", name).is_symlink() and not (root.place / name).exists():
            (root.place / name).symlink_to(Path("/", name).readlink())


def gather_own(root: Root, virtualenv: Path, programs: list[Path]) -> None:
    """Fill the layer of one image."""
    root.add_tree(virtualenv, "__pycache__", "pip*", "activate*", "Activate*")
    root.compile(virtualenv / "lib")
    for path in (*programs, *libraries_of([*programs, *modules_in(virtualenv)])):
        root.add(path)
    note_packages(root, root.taken)


def main() -> None:
    """Fill both folders."""
    parser = argparse.ArgumentParser(description="Gather the root of an image.")
    parser.add_argument("base", type=Path)
    parser.add_argument("own", type=Path)
    parser.add_argument("virtualenv", type=Path)
    parser.add_argument("--program", type=Path, action="append", default=[])
    options = parser.parse_args()
    base = Root(options.base)
    own = Root(options.own, without=base)
    gather_base(base)
    gather_own(own, options.virtualenv, options.program)
    for root in (base, own):
        root.settle(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))


if __name__ == "__main__":
    main()
