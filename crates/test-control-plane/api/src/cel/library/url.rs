//! URLs.
//!
//! Upstream: `URLs` of `k8s.io/apiserver/pkg/cel/library`

use std::any::Any;
use std::collections::HashMap;

use cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use crate::go::url::{self, Url};

opaque!(Url, URL, "kubernetes.URL");

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_type(URL.to_owned())?;
    add_overload!(environment, fn read: (CelString<'_>) -> Result<Url>, name = "url")?;
    add_overload!(environment, fn is_url: (CelString<'_>) -> CelBool, name = "isURL")?;
    add_member_overload!(environment, fn scheme: (Url) -> CelString<'_>, name = "getScheme")?;
    add_member_overload!(environment, fn host: (Url) -> CelString<'_>, name = "getHost")?;
    add_member_overload!(environment, fn hostname: (Url) -> CelString<'_>, name = "getHostname")?;
    add_member_overload!(environment, fn port: (Url) -> CelString<'_>, name = "getPort")?;
    add_member_overload!(environment, fn path: (Url) -> CelString<'_>, name = "getEscapedPath")?;
    add_member_overload!(environment, fn query: (Url) -> CelMap<'_>, name = "getQuery")
}

fn read(text: &CelString<'_>) -> Result<Url, ExecutionError> {
    let text = text.inner();
    let found = url::check_request(text).and_then(|()| Url::parse(text));
    found.map_err(|error| {
        let text = format!("URL parse error during conversion from string: {error}");
        ExecutionError::function_error("url", text)
    })
}

fn is_url(text: &CelString<'_>) -> CelBool {
    url::check_request(text.inner()).is_ok().into()
}

fn scheme<'v>(url: &Url) -> CelString<'v> {
    CelString::from(url.scheme.clone())
}

fn host<'v>(url: &Url) -> CelString<'v> {
    CelString::from(url.host.clone())
}

fn hostname<'v>(url: &Url) -> CelString<'v> {
    CelString::from(url.hostname().to_owned())
}

fn port<'v>(url: &Url) -> CelString<'v> {
    CelString::from(url.port().to_owned())
}

fn path<'v>(url: &Url) -> CelString<'v> {
    CelString::from(url.path.clone())
}

fn query<'v>(url: &Url) -> CelMap<'v> {
    let members = url.query().into_iter().map(|(name, values)| {
        let values = values.into_iter();
        let values: Vec<Box<dyn Val>> = values
            .map(|value| Box::new(CelString::from(value)) as Box<dyn Val>)
            .collect();
        let values: Box<dyn Val> = Box::new(CelList::from(values));
        (CelMapKey::from(name), values)
    });
    CelMap::from(members.collect::<HashMap<_, _>>())
}
