# SPDX-License-Identifier: MIT
"""What the end-to-end tests, the benchmarks and the demo may use to run a musterd and talk to its servers."""
