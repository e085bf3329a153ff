"""The networks: bottom models of the parties, the top model of the aggregator. Torch lives here."""
