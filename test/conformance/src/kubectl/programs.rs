//! The programs of a session.

use std::path::{Path, PathBuf};

use super::client;
use crate::programs;

/// Programs of a session.
#[derive(Clone, Debug)]
pub struct Programs {
    /// kubectl.
    pub kubectl: PathBuf,
    /// The control plane.
    pub control_plane: PathBuf,
    /// The controller.
    pub controller: PathBuf,
}

impl Programs {
    /// Finds kubectl, and builds the programs that aren't given.
    ///
    /// # Errors
    ///
    /// No suitable kubectl exists, or a program can't be built.
    pub fn find(
        kubectl: Option<&Path>,
        control_plane: Option<PathBuf>,
        controller: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let kubectl = client::find(kubectl)?;
        let (control_plane, controller) = match (control_plane, controller) {
            (Some(control_plane), Some(controller)) => (control_plane, controller),
            (control_plane, controller) => {
                let built = programs::build()?;
                (
                    control_plane.unwrap_or(built.control_plane),
                    controller.unwrap_or(built.controller),
                )
            }
        };
        Ok(Self {
            kubectl,
            control_plane,
            controller,
        })
    }
}
