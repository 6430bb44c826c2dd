from pathlib import Path


def write(folder: Path) -> None:
    pass
