"""The outcomes of ns-3 on the benchmark scenarios."""
