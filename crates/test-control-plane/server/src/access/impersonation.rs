//! Impersonation through the `Impersonate-*` headers.
//!
//! A client may impersonate a user if its roles allow the verb `impersonate:MODE` on the user and
//! `impersonate-on:MODE:VERB` on the request's resource. The legacy verb `impersonate` alone also
//! suffices.

use std::sync::Arc;

use http::HeaderMap;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{query, validation};

use super::authorize::{authorize, decide};
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::forbidden::forbidden;
use crate::auth::identity::{
    ANONYMOUS, AUTHENTICATED, Identity, MASTERS, NODES, UNAUTHENTICATED, node_name,
    service_account_groups, split_service_account,
};
use crate::incoming::Incoming;
use crate::state::Access;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The extra key with the node of the pod to which a service account token is bound.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";

/// Number of groups or extra values from which the permission for all of them is checked first.
const MANY: usize = 4;

/// A mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account impersonates the node of its pod.
    AssociatedNode,
    /// A user impersonates any node.
    ArbitraryNode,
    /// A user impersonates a service account.
    ServiceAccount,
    /// A user impersonates any other user.
    UserInfo,
    /// A user impersonates anyone, by the verb `impersonate` alone.
    Legacy,
}

const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// Returns the verb on the impersonated user.
    fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".to_owned(),
            _ => format!("impersonate:{}", self.name()),
        }
    }

    /// Returns the API group of the user and group resources.
    fn group(self) -> &'static str {
        match self {
            Self::Legacy => "",
            _ => AUTHENTICATION,
        }
    }

    /// Reports whether the mode covers the impersonated user.
    fn fits(self, sender: &Identity, wanted: &Identity) -> bool {
        let name_only =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = valid_node(&wanted.name);
        let is_account = split_service_account(&wanted.name).is_some();
        match self {
            Self::AssociatedNode => {
                let own = sender.extra.get(NODE_OF_TOKEN).map(Vec::as_slice);
                name_only
                    && split_service_account(&sender.name).is_some()
                    && matches!((node, own), (Some(node), Some([own])) if own == node)
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && is_account,
            Self::UserInfo => node.is_none() && !is_account,
            Self::Legacy => true,
        }
    }
}

const AUTHENTICATION: &str = "authentication.k8s.io";

fn valid_node(user: &str) -> Option<&str> {
    node_name(user).filter(|name| validation::is_subdomain(name))
}

/// Returns the user in the impersonation headers, if any.
///
/// # Errors
///
/// 400 for headers without a user name, 403 if the sender may not impersonate the user.
///
/// Upstream: `WithConstrainedImpersonation`.
pub(crate) fn impersonate(
    access: &Access,
    sender: &Identity,
    incoming: &Incoming,
) -> ApiResult<Option<Arc<Identity>>> {
    let Some(wanted) = wanted(&incoming.headers)? else {
        return Ok(None);
    };
    let attributes = &Attributes::of(&incoming.method, &incoming.path, &incoming.query);
    let mut refusal = None;
    for mode in MODES.into_iter().filter(|mode| mode.fits(sender, &wanted)) {
        match check(access, mode, sender, &wanted, attributes) {
            Ok(()) => return Ok(Some(Arc::new(acting(mode, wanted)))),
            Err(err) => refusal = refusal.or(Some(err)),
        }
    }
    Err(refusal.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

/// Checks all permissions that a mode needs.
fn check(
    access: &Access,
    mode: Mode,
    sender: &Identity,
    wanted: &Identity,
    attributes: &Attributes<'_>,
) -> ApiResult<()> {
    if mode != Mode::Legacy {
        let verb = format!("impersonate-on:{}:{}", mode.name(), attributes.verb);
        authorize(access, sender, &attributes.with_verb(verb))?;
    }
    let ask = |resource: Resource<'_>| {
        authorize(access, sender, &Attributes::resource(mode.verb(), resource))
    };
    ask(user_resource(mode, &wanted.name))?;
    if !wanted.uid.is_empty() {
        ask(named(AUTHENTICATION, "uids", &wanted.uid))?;
    }
    check_groups(access, mode, sender, wanted)?;
    check_extra(access, mode, sender, wanted)
}

fn check_groups(
    access: &Access,
    mode: Mode,
    sender: &Identity,
    wanted: &Identity,
) -> ApiResult<()> {
    let groups = &wanted.groups;
    let on = |name| Attributes::resource(mode.verb(), named(mode.group(), "groups", name));
    if mode != Mode::Legacy {
        if groups.iter().any(String::is_empty) {
            let why = "impersonating the empty string group is not allowed";
            return Err(forbidden(sender, &on(""), why));
        }
        if wanted.is_in(MASTERS) {
            let why = "impersonating the system:masters group is not allowed";
            return Err(forbidden(sender, &on(MASTERS), why));
        }
        if groups.len() >= MANY && decide(access, sender, &on("*")).is_allowed() {
            return Ok(());
        }
    }
    groups
        .iter()
        .try_for_each(|group| authorize(access, sender, &on(group)))
}

fn check_extra(access: &Access, mode: Mode, sender: &Identity, wanted: &Identity) -> ApiResult<()> {
    let on = |key, value| {
        let resource = Resource {
            subresource: key,
            ..named(AUTHENTICATION, "userextras", value)
        };
        Attributes::resource(mode.verb(), resource)
    };
    let values = wanted.extra.iter();
    let mut values = values.flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
    if mode != Mode::Legacy {
        if let Some(why) = flaw_of_extra(wanted) {
            return Err(forbidden(sender, &on("".into(), ""), &why));
        }
        let many = values.clone().count() >= MANY;
        if many && decide(access, sender, &on("*".into(), "*")).is_allowed() {
            return Ok(());
        }
    }
    values.try_for_each(|(key, value)| authorize(access, sender, &on(key.into(), value)))
}

/// Returns the effective user, with the implicit groups.
fn acting(mode: Mode, mut user: Identity) -> Identity {
    if user.groups.is_empty() {
        if let Some((namespace, _)) = split_service_account(&user.name) {
            user.groups = service_account_groups(namespace);
        } else if mode != Mode::Legacy && valid_node(&user.name).is_some() {
            user.groups = vec![NODES.to_owned()];
        }
    }
    if user.name == ANONYMOUS {
        user.ensure_group(UNAUTHENTICATED);
    } else if !user.is_in(UNAUTHENTICATED) {
        user.ensure_group(AUTHENTICATED);
    }
    user
}

/// Returns the resource that represents the user.
fn user_resource(mode: Mode, name: &str) -> Resource<'_> {
    if let Some((namespace, account)) = split_service_account(name) {
        return Resource {
            namespace: namespace.into(),
            ..named(mode.group(), "serviceaccounts", account)
        };
    }
    match valid_node(name) {
        // This permission covers only the associated node, so it names all nodes.
        Some(_) if mode == Mode::AssociatedNode => named(mode.group(), "nodes", "*"),
        Some(node) if mode != Mode::Legacy => named(mode.group(), "nodes", node),
        _ => named(mode.group(), "users", name),
    }
}

fn named<'a>(group: &'a str, resource: &'a str, name: &'a str) -> Resource<'a> {
    Resource {
        group: group.into(),
        plural: resource.into(),
        name: name.into(),
        ..Resource::default()
    }
}

fn flaw_of_extra(wanted: &Identity) -> Option<String> {
    wanted.extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if key.chars().any(char::is_uppercase) {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key:?}"
            ));
        }
        let empty = values.iter().any(String::is_empty);
        empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
    })
}

/// Returns the user in the headers.
fn wanted(headers: &HeaderMap) -> ApiResult<Option<Identity>> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(None);
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut user = Identity::user(one(USER)).uid(one(UID));
    user.groups = headers.get_all(GROUP).iter().map(text).collect();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            user = user.extra(query::decode_path(key).as_ref(), text(value));
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == Identity::default() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested {} without impersonating a user name",
        go_struct(&user)
    )))
}

/// Formats the user like Go's `%#v`.
fn go_struct(user: &Identity) -> String {
    let texts = |list: &[String]| {
        let list: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
        match list.as_slice() {
            [] => "[]string(nil)".to_owned(),
            list => format!("[]string{{{}}}", list.join(", ")),
        }
    };
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", texts(values)))
        .collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        user.name,
        user.uid,
        texts(&user.groups)
    )
}
