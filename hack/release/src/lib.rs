//! The artefacts of a release, from built programs and the deployment manifests.
//!
//! Everything here is a function of its inputs: the same programs, commit and version give the same
//! bytes on any machine. [`pack`] writes the artefacts, [`seal`] what describes all of them. The
//! formats are [`archive`] and [`layout`], which [`opened`] reads; every other module holds one kind of
//! artefact.

#![expect(
    clippy::missing_errors_doc,
    reason = "every function fails if a file is unreadable or unwritable"
)]

pub mod archive;
pub mod bill;
pub mod chart;
pub mod digest;
pub mod formula;
pub mod image;
pub mod krew;
pub mod layout;
pub mod opened;
pub mod pack;
pub mod platform;
pub mod provenance;
pub mod release;
pub mod seal;
