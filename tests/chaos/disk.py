"""A small disk: a tmpfs in a mount namespace that ends with the process that keeps it."""
import os
import shutil
import subprocess

SIZE = "4m"


class SmallDisk:
    def __init__(self, folder: str) -> None:
        self.mount = os.path.join(folder, "disk")
        os.makedirs(self.mount, exist_ok=True)
        script = ('mount -t tmpfs -o size="$2" holdfast-chaos "$1" && mkdir "$1/out" && echo mounted && '
                  'exec setpriv --pdeathsig KILL sleep 1000000')
        self._keeper = subprocess.Popen(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", self.mount, SIZE],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)
        line = self._keeper.stdout.readline().strip()
        self.works = line == "mounted"
        self.why_not = "" if self.works else line
        self.out = self.seen("out")

    def seen(self, name: str) -> str:
        """A file on it, as seen from outside."""
        return f"/proc/{self._keeper.pid}/root{self.mount}/{name}"

    def enter(self, folder: str) -> list[str]:
        """Put before a command: it runs where the disk is mounted, in `folder`."""
        return ["nsenter", "--target", str(self._keeper.pid), "--user", "--preserve-credentials", "--mount", "--wd=" + folder]

    def fill(self, left_bytes: int) -> None:
        block = b"x" * 4096
        with open(self.seen("filler"), "ab", buffering=0) as filler:
            try:
                while filler.write(block) == len(block):
                    pass
            except OSError:
                pass
            size = os.fstat(filler.fileno()).st_size
            filler.truncate(max(0, size - left_bytes))

    def empty(self) -> None:
        try:
            os.unlink(self.seen("filler"))
        except OSError:
            pass

    def close(self, keep_in: str = "") -> None:
        """Everything that wrote to it has ended. Its records are copied first, where they are wanted."""
        if self.works and keep_in:
            shutil.copytree(self.out, keep_in, dirs_exist_ok=True)
        self._keeper.kill()
        self._keeper.wait()
        self._keeper.stdout.close()
