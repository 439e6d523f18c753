//! Reasons for which a pod is replaced instead of updated in place.

use super::amounts::QosClass;

/// The reason for which a pod is replaced instead of updated in place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The set no longer asks for updates of running pods.
    #[error("the set opted out")]
    OptedOut,
    /// The pod isn't running and ready.
    #[error("the pod is not running and ready")]
    NotReady,
    /// The revision of this name is gone, or another tool wrote it in another form.
    #[error("revision {0} does not record a whole template")]
    NoTemplate(Box<str>),
    /// The template differs in a field that a running pod can't change.
    #[error("{0} differs")]
    Field(String),
    /// The set asks for changes of labels and annotations alone.
    #[error("the resources of container {0} differ, and the set asks for metadata only")]
    ResourcesNotChosen(Box<str>),
    /// Only one of the templates names this amount, and a pod can't lose it.
    #[error("only one revision has {amount} of container {container}")]
    AmountOfOne {
        /// The container.
        container: Box<str>,
        /// The amount, such as `limits.memory`.
        amount: String,
    },
    /// The container restarts for the change.
    #[error("container {container} restarts for a change of {resource}")]
    Restarts {
        /// The container.
        container: Box<str>,
        /// The resource.
        resource: &'static str,
    },
    /// The template or the pod has resources for all containers together.
    #[error("the pod has resources of its own, besides those of its containers")]
    PodResources,
    /// The pod lacks a container of the template.
    #[error("the pod has no container {0}")]
    NoContainer(Box<str>),
    /// The pod would get another class of service.
    #[error("its QoS class would change from {from} to {to}")]
    QosClass {
        /// The present class.
        from: QosClass,
        /// The other class.
        to: QosClass,
    },
    /// The node can't carry out the resize.
    #[error("the resize is infeasible{0}")]
    Infeasible(Said),
    /// The node still defers the resize.
    #[error("the resize has been deferred for {seconds} seconds{said}")]
    Deferred {
        /// Time since the request.
        seconds: u64,
        /// The kubelet's message.
        said: Said,
    },
    /// The resize is not completed.
    #[error("the resize has been in progress for {seconds} seconds{said}")]
    InProgress {
        /// Time since the request.
        seconds: u64,
        /// The kubelet's message.
        said: Said,
    },
    /// The API server refused a request.
    #[error("the API server refused it: {0}")]
    Refused(String),
}

/// A message to append, which may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(pub String);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.0 {
            "" => Ok(()),
            said => write!(f, ": {said}"),
        }
    }
}
