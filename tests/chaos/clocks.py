"""Wrong wall clocks for single processes, by a small library of our own that is preloaded (wrong_clock.c)."""
import os
import shutil
import subprocess
from typing import NamedTuple

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrong_clock.c")


def build(folder: str) -> str:
    """Compiles the library; gives its path. Empty where there is no compiler."""
    compiler = next((path for name in ("gcc", "cc", "clang") if (path := shutil.which(name))), None)
    if compiler is None:
        return ""
    library = os.path.join(os.path.abspath(folder), "wrong_clock.so")
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-Wall", "-o", library, SOURCE], check=True)
    return library


class Clock(NamedTuple):
    """fake = start + offset + (true - start) * rate."""
    offset_ms: int = 0
    rate: float = 1.0

    @property
    def right(self) -> bool:
        return self.offset_ms == 0 and self.rate == 1.0

    def environment(self, library: str, start_ms: float) -> list[str]:
        """As arguments of env(1). `start_ms`: from when on it runs at its rate."""
        if self.right:
            return []
        return [f"LD_PRELOAD={library}", f"WRONG_CLOCK={round(start_ms * 1e6)} {self.offset_ms * 1_000_000} {self.rate}"]

    def true_ms(self, fake_ms: float, start_ms: float) -> float:
        return start_ms + (fake_ms - self.offset_ms - start_ms) / self.rate

    def fake_ms(self, true_ms: float, start_ms: float) -> float:
        return start_ms + self.offset_ms + (true_ms - start_ms) * self.rate

    def __str__(self) -> str:
        return f"{self.offset_ms:+d} ms" + (f", rate {self.rate}" if self.rate != 1.0 else "")
