"""BBR's share beside one flow of CUBIC or Reno, and the model of Ware et al. (2019)."""
