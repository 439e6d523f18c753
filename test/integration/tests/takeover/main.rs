//! The reference hands its sets over, at rest or in the middle of a rollout, whatever its version
//! was, and gets them back: nobody notices.

mod brought_up;
mod mid_rollout;
mod settled;
