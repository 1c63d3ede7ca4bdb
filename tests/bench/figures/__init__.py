"""What tests/bench/compare is made of."""
