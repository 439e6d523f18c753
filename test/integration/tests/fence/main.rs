//! Tests of the fence: each namespace has exactly one StatefulSet controller.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod plugin;
mod policies;
mod served;
mod support;
