"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Data", "Json", "Level", "Model", "Seed"]

Data = Annotated[Path, typer.Argument(help="CSV (also - for standard input) or Parquet.")]
Model = Annotated[Path, typer.Argument(help="Model file that fit wrote.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON; `tensorlace schema` says what is in it.")
]
Level = Annotated[
    float, typer.Option("--coverage", min=0.01, max=0.999, help="Nominal coverage of intervals.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The only randomness.")]
