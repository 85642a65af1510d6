"""Chat models on servers: clients, pacing, streams, prices, error handling."""
