"""`python -m benchmarks.soak`: as a server, a CI job and a hostile file would use trueport, for long.

Four parts, each by itself with `--part`; what a part found is kept in `build/soak`, and the page is written from all
that were run. Everything is seeded; only the moments of kills and the order of races are the machine's.
"""
