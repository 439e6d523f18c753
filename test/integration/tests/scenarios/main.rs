//! Tests of sets while users, other controllers and the garbage collector interfere.

mod harness;
mod history;
mod names;
mod ownership;
mod successors;
