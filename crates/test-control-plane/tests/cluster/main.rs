//! The cluster API over every backend: the choice by environment, and the life of real binaries,
//! with scripts as stand-ins.

#![cfg(all(unix, feature = "client"))]
#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod actors;
mod any_kube;
mod choosing;
mod existing;
mod failing;
#[cfg(all(feature = "cel", feature = "openapi"))]
mod large_definitions;
mod manifests;
mod newcomer;
#[cfg(feature = "cli")]
mod running;
mod stand_ins;
#[cfg(feature = "cel")]
mod support;
