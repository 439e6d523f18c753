//! What happens to sets when users, other controllers and the garbage collector act in between.

mod harness;
mod history;
mod names;
mod ownership;
mod successors;
