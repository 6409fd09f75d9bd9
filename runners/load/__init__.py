"""The load generator: sessions of a plan, on time, against a real engine."""
