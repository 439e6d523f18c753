//! The reference hands its sets over, at rest or in the middle of a rollout, whatever its version
//! was, and gets them back: nobody notices.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod brought_up;
mod mid_rollout;
mod settled;
