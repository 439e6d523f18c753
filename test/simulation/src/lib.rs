//! Deterministic simulation: seeds, faults, invariants, regressions.
