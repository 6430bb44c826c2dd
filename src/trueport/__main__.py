"""`python -m trueport` is the `trueport` command."""

from trueport.cli.main import main

main(prog_name="trueport")
