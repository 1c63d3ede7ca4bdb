"""What the tests of clusters are written with."""
