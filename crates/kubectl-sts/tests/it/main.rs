//! The program against the embedded control plane with the shipped controller, in virtual time.

mod claims;
mod docs;
mod history;
mod kubectl;
mod loops;
mod names;
mod opt_ins;
mod plan;
mod preflight;
mod program;
mod recreate;
mod resize;
mod shadow_report;
mod stage;
mod stuck;
mod timeline;
mod wait;
mod watch;
mod why;
