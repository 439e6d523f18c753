//! Questions to the authorizer.
//!
//! Upstream: `Authz` and `AuthzSelectors` of `k8s.io/apiserver/pkg/cel/library`. Selectors don't
//! change the decisions of role-based access control, so their values are ignored.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload};

use crate::go::names;

/// A question of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Namespace and name of the service account in question; `None` for the request's user.
    pub service_account: Option<(String, String)>,
    /// The verb.
    pub verb: String,
    /// The subject.
    pub about: About,
}

/// The subject of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A path that is no resource.
    Path(String),
    /// A resource.
    Resource(Resource),
}

impl Default for About {
    fn default() -> Self {
        Self::Resource(Resource::default())
    }
}

/// A resource in a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for core.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all, and for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; empty for all.
    pub name: String,
}

/// A response of the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the user may do it.
    pub is_allowed: bool,
    /// The reason.
    pub reason: String,
    /// The error, if the authorizer failed.
    pub error: Option<String>,
}

/// Decides about the questions of expressions.
pub trait Authorizer: Debug + Send + Sync {
    /// Returns the decision about a question.
    fn decide(&self, question: &Question) -> Decision;
}

/// Makes a type with an authorizer and a question.
macro_rules! asking {
    ($of:ident, $name:ident, $shown:literal) => {
        #[derive(Clone, Debug)]
        pub(in crate::cel) struct $of {
            pub(in crate::cel) authorizer: Arc<dyn Authorizer>,
            pub(in crate::cel) question: Question,
        }

        impl PartialEq for $of {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.authorizer, &other.authorizer) && self.question == other.question
            }
        }

        opaque!($of, $name, $shown);
    };
}

asking!(Asked, AUTHORIZER, "kubernetes.authorization.Authorizer");
asking!(PathCheck, PATH_CHECK, "kubernetes.authorization.PathCheck");
asking!(
    GroupCheck,
    GROUP_CHECK,
    "kubernetes.authorization.GroupCheck"
);
asking!(
    ResourceCheck,
    RESOURCE_CHECK,
    "kubernetes.authorization.ResourceCheck"
);
opaque!(Decision, DECISION, "kubernetes.authorization.Decision");

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    for of in [AUTHORIZER.to_owned(), PATH_CHECK.to_owned()] {
        environment.add_type(of)?;
    }
    for of in [&GROUP_CHECK, &RESOURCE_CHECK, &DECISION] {
        environment.add_type(of.to_owned())?;
    }
    of_authorizer(environment)?;
    of_checks(environment)?;
    add_member_overload!(environment, fn allowed: (Decision) -> CelBool)?;
    add_member_overload!(environment, fn errored: (Decision) -> CelBool)?;
    add_member_overload!(environment, fn error: (Decision) -> CelString<'_>)?;
    add_member_overload!(environment, fn reason: (Decision) -> CelString<'_>)
}

fn of_authorizer(environment: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(environment, fn path: (Asked, CelString<'_>) -> Result<PathCheck>)?;
    add_member_overload!(environment, fn group: (Asked, CelString<'_>) -> GroupCheck)?;
    add_member_overload!(environment,
        fn service_account: (Asked, CelString<'_>, CelString<'_>) -> Result<Asked>)
}

fn of_checks(environment: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(environment,
        fn resource: (GroupCheck, CelString<'_>) -> Result<ResourceCheck>)?;
    add_member_overload!(environment,
        fn subresource: (ResourceCheck, CelString<'_>) -> ResourceCheck)?;
    add_member_overload!(environment,
        fn namespace: (ResourceCheck, CelString<'_>) -> ResourceCheck)?;
    add_member_overload!(environment, fn name: (ResourceCheck, CelString<'_>) -> ResourceCheck)?;
    add_member_overload!(environment,
        fn selected: (ResourceCheck, CelString<'_>) -> ResourceCheck, name = "fieldSelector")?;
    add_member_overload!(environment,
        fn selected: (ResourceCheck, CelString<'_>) -> ResourceCheck, name = "labelSelector")?;
    add_member_overload!(environment,
        fn check_path: (PathCheck, CelString<'_>) -> Decision, name = "check")?;
    add_member_overload!(environment,
        fn check: (ResourceCheck, CelString<'_>) -> Decision)
}

fn path(asked: &Asked, path: &CelString<'_>) -> Result<PathCheck, ExecutionError> {
    if path.inner().trim().is_empty() {
        return Err(ExecutionError::function_error(
            "path",
            "path must not be empty",
        ));
    }
    Ok(PathCheck {
        authorizer: Arc::clone(&asked.authorizer),
        question: Question {
            about: About::Path(path.inner().to_owned()),
            ..asked.question.clone()
        },
    })
}

fn group(asked: &Asked, group: &CelString<'_>) -> GroupCheck {
    let resource = Resource {
        group: group.inner().to_owned(),
        ..Resource::default()
    };
    GroupCheck {
        authorizer: Arc::clone(&asked.authorizer),
        question: Question {
            about: About::Resource(resource),
            ..asked.question.clone()
        },
    }
}

fn service_account(
    asked: &Asked,
    namespace: &CelString<'_>,
    name: &CelString<'_>,
) -> Result<Asked, ExecutionError> {
    let (namespace, name) = (namespace.inner(), name.inner());
    let wrong = |what: &str| {
        let text = format!("Invalid service account {what}");
        Err(ExecutionError::function_error("serviceAccount", text))
    };
    if !names::dns_subdomain(name).is_empty() {
        return wrong("name");
    }
    if !names::dns_label(namespace).is_empty() {
        return wrong("namespace");
    }
    Ok(Asked {
        authorizer: Arc::clone(&asked.authorizer),
        question: Question {
            service_account: Some((namespace.to_owned(), name.to_owned())),
            ..Question::default()
        },
    })
}

fn resource(group: &GroupCheck, name: &CelString<'_>) -> Result<ResourceCheck, ExecutionError> {
    if name.inner().trim().is_empty() {
        return Err(ExecutionError::function_error(
            "resource",
            "resource must not be empty",
        ));
    }
    let check = ResourceCheck {
        authorizer: Arc::clone(&group.authorizer),
        question: group.question.clone(),
    };
    let name = name.inner().to_owned();
    Ok(with(&check, |resource| resource.resource = name))
}

/// Returns the question with a changed resource.
fn with(check: &ResourceCheck, change: impl FnOnce(&mut Resource)) -> ResourceCheck {
    let mut changed = check.clone();
    if let About::Resource(resource) = &mut changed.question.about {
        change(resource);
    }
    changed
}

fn subresource(check: &ResourceCheck, name: &CelString<'_>) -> ResourceCheck {
    let name = name.inner().to_owned();
    with(check, |resource| resource.subresource = name)
}

fn namespace(check: &ResourceCheck, name: &CelString<'_>) -> ResourceCheck {
    let name = name.inner().to_owned();
    with(check, |resource| resource.namespace = name)
}

fn name(check: &ResourceCheck, name: &CelString<'_>) -> ResourceCheck {
    let name = name.inner().to_owned();
    with(check, |resource| resource.name = name)
}

fn selected(check: &ResourceCheck, _: &CelString<'_>) -> ResourceCheck {
    check.clone()
}

fn decide(authorizer: &dyn Authorizer, question: &Question, verb: &CelString<'_>) -> Decision {
    authorizer.decide(&Question {
        verb: verb.inner().to_owned(),
        ..question.clone()
    })
}

fn check_path(check: &PathCheck, verb: &CelString<'_>) -> Decision {
    decide(&*check.authorizer, &check.question, verb)
}

fn check(check: &ResourceCheck, verb: &CelString<'_>) -> Decision {
    decide(&*check.authorizer, &check.question, verb)
}

fn allowed(decision: &Decision) -> CelBool {
    decision.is_allowed.into()
}

fn errored(decision: &Decision) -> CelBool {
    decision.error.is_some().into()
}

fn error<'v>(decision: &Decision) -> CelString<'v> {
    CelString::from(decision.error.clone().unwrap_or_default())
}

fn reason<'v>(decision: &Decision) -> CelString<'v> {
    CelString::from(decision.reason.clone())
}
