//! Tests of takeovers from and to upstream, of any version, at rest or in the middle of a
//! rollout, without visible effects.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api_server_versions;
mod brought_up;
mod mid_rollout;
mod settled;
