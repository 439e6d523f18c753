//! Deterministic simulation of the controller: one seed decides everything that happens.
//!
//! A run starts the shipped controller in several instances over the embedded control plane, in
//! paused time. A [`Plan`](plan::Plan) lists the actions of users, the faults, and their times. Everything that the
//! API server stores and everything that the instances send is recorded, and judged afterwards.
//!
//! ```text
//! seed --> plan --> run --> record --> judges     --> violations
//!          file              |    \--> situations --> reached or not
//!                            \-------> view       --> table, page
//! ```

pub mod agent;
pub mod api_servers;
pub mod catalogue;
pub mod clock;
mod entropy;
pub mod exhaustive;
pub mod history;
pub mod instance;
pub mod judges;
pub mod minimize;
pub mod network;
pub mod outcome;
pub mod page;
pub mod plan;
pub mod record;
pub mod regression;
pub mod run;
pub mod seed;
pub mod situations;
pub mod table;
pub mod views;
pub mod world;
