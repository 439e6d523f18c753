//! Tests of the artefacts of a release, made from small stand-ins for the programs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fixture;
mod images;
mod packages;
mod seal;
