//! Tests of the election against a scripted server, in paused time.

mod acquiring;
mod ending;
mod fencing;
mod renewing;
mod support;
mod upstream;
