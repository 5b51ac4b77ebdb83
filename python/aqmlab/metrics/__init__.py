"""What runs measured: `catalogue` says what each metric is and where it stands, `table` computes
for every run those that are made of others, `rfc7928` has their formulas, `tradeoff` sets delay
against goodput."""
