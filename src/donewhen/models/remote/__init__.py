"""Chat models over the network: clients, pacing, streams, prices, and what a server's errors mean."""
