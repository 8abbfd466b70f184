"""What the tools in Python share about their command line."""
import argparse


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and ends with 2."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}; --help tells more\n")


def at_least_one(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 on")
    return number
