//! Which events enqueue which sets.
