//! The election against a server that answers by a script, in paused time.

mod acquiring;
mod ending;
mod fencing;
mod renewing;
mod support;
