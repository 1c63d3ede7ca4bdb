"""What the tests in this folder are written with: brokers, clients, records, raw connections."""
