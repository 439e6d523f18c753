//! Faults: what clients see of them.

mod gates;
mod requests;
