//! Selection of the backend from the environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kube_test_control_plane_actors::parse_duration;

use super::binaries::Assets;
use super::error::ClusterError;
use super::variables::{ASSETS, EXISTING};

const START_TIMEOUT: &str = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT";
const STOP_TIMEOUT: &str = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT";

/// The implementation of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The embedded control plane.
    Embedded,
    /// A kube-apiserver and an etcd, started for the test.
    Binaries(Assets),
    /// The cluster of the kubeconfig.
    Existing,
}

impl Backend {
    /// Selects the backend from the environment.
    ///
    /// # Errors
    ///
    /// A variable has an invalid value, or the binaries are unusable.
    pub fn from_env() -> Result<Self, ClusterError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// Selects the backend from other variables than the environment's.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Self::from_env).
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ClusterError> {
        let value = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(existing) = value(EXISTING) {
            let existing = existing.to_string_lossy();
            match existing.to_ascii_lowercase().as_str() {
                "true" => return Ok(Self::Existing),
                "false" => {}
                _ => {
                    return Err(ClusterError::Setting {
                        variable: EXISTING,
                        value: existing.into_owned(),
                        desired: "true or false",
                    });
                }
            }
        }
        let Some(folder) = value(ASSETS) else {
            return Ok(Self::Embedded);
        };
        let mut assets = Assets::in_folder(PathBuf::from(folder))?;
        if let Some(timeout) = timeout(START_TIMEOUT, value(START_TIMEOUT))? {
            assets = assets.start_timeout(timeout);
        }
        if let Some(timeout) = timeout(STOP_TIMEOUT, value(STOP_TIMEOUT))? {
            assets = assets.stop_timeout(timeout);
        }
        Ok(Self::Binaries(assets))
    }

    /// Returns true for the embedded control plane, which also runs in paused time.
    pub fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }
}

fn timeout(
    variable: &'static str,
    value: Option<OsString>,
) -> Result<Option<Duration>, ClusterError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let text = value.to_string_lossy();
    match parse_duration(&text) {
        Some(duration) => Ok(Some(duration)),
        None => Err(ClusterError::Setting {
            variable,
            value: text.into_owned(),
            desired: "a number and a unit of ms, s, m or h",
        }),
    }
}
