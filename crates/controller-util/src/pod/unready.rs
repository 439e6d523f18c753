//! Details of a pod that isn't ready.

use jiff::Timestamp;

/// Details of a pod that isn't ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unready {
    /// Beginning of the unready time: the last change of the Ready condition, or else the pod's
    /// creation.
    pub since: Option<Timestamp>,
    /// The trouble of its first container that has one, init containers first.
    pub trouble: Option<ContainerTrouble>,
}

/// A container's trouble that doesn't pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerTrouble {
    /// Its image can't be pulled.
    ImagePull,
    /// It can't be created or started as configured.
    ContainerConfig,
    /// It ends again and again.
    CrashLoop,
}

impl ContainerTrouble {
    /// Returns the trouble of a container that waits for this reason, as the kubelet names it.
    pub fn of_waiting(reason: &str) -> Option<Self> {
        Some(match reason {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Self::ImagePull
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Self::ContainerConfig
            }
            "CrashLoopBackOff" => Self::CrashLoop,
            _ => return None,
        })
    }
}
