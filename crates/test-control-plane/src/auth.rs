//! Who asks: bearer tokens, client certificates, or nobody. Whoever is known may do everything.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::route::{ResourceRequest, Route};
use crate::status::{ApiError, ApiResult, details};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// What the transport knows of the client; requests without it come from this process.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The user of the client certificate, if there was one.
    pub certificate: Option<Identity>,
}

impl Identity {
    /// The administrator: this process and the clients that it hands a kubeconfig.
    pub fn admin() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            groups: vec![
                "system:masters".to_owned(),
                "system:authenticated".to_owned(),
            ],
        }
    }

    /// A client without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }

    fn is_anonymous(&self) -> bool {
        self.name == "system:anonymous"
    }
}

/// The tokens that are known.
#[derive(Clone, Debug, Default)]
pub struct Tokens(BTreeMap<String, Identity>);

/// A line of a token file that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the token file needs token,user,uid and optional groups")]
pub struct TokenFileError {
    /// The line's number, from 1.
    pub line: usize,
}

impl Tokens {
    /// Adds a token.
    pub fn insert(&mut self, token: &str, identity: Identity) {
        self.0.insert(token.to_owned(), identity);
    }

    /// Adds the tokens of a file of kube-apiserver's form: `token,user,uid,"group1,group2"`.
    ///
    /// # Errors
    ///
    /// A line has fewer than three columns.
    pub fn insert_file(&mut self, text: &str) -> Result<(), TokenFileError> {
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let error = TokenFileError { line: i + 1 };
            let mut columns = line.splitn(4, ',').map(str::trim);
            let (Some(token), Some(user), Some(_uid)) =
                (columns.next(), columns.next(), columns.next())
            else {
                return Err(error);
            };
            let groups = columns.next().unwrap_or_default().trim_matches('"');
            let mut groups: Vec<String> = groups
                .split(',')
                .map(str::trim)
                .filter(|g| !g.is_empty())
                .map(str::to_owned)
                .collect();
            groups.push("system:authenticated".to_owned());
            let name = user.to_owned();
            self.insert(token, Identity { name, groups });
        }
        Ok(())
    }

    /// Who a request comes from.
    ///
    /// # Errors
    ///
    /// 401 for a token that isn't known.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: Option<&Peer>,
    ) -> ApiResult<Identity> {
        let header = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        if let Some(token) = header.and_then(|text| text.strip_prefix("Bearer ")) {
            let found = self.0.get(token.trim()).cloned();
            return found.ok_or_else(ApiError::unauthorized);
        }
        Ok(match peer {
            None => Identity::admin(),
            Some(Peer { certificate }) => certificate.clone().unwrap_or_else(Identity::anonymous),
        })
    }
}

/// Refuses what the user may not do.
///
/// # Errors
///
/// 403 for anonymous clients, except where everyone may read.
pub(crate) fn authorize(identity: &Identity, route: &Route, path: &str) -> ApiResult<()> {
    if !identity.is_anonymous() || matches!(route, Route::Health | Route::Version) {
        return Ok(());
    }
    let user = &identity.name;
    Err(match route {
        Route::Resource(request) => forbidden_resource(user, request),
        _ => ApiError {
            details: Some(serde_json::json!({})),
            ..ApiError::new(
                403,
                "Forbidden",
                format!("forbidden: User \"{user}\" cannot get path \"{path}\""),
            )
        },
    })
}

fn forbidden_resource(user: &str, request: &ResourceRequest) -> ApiError {
    let kind = request.kind;
    let mut resource = kind.plural.to_owned();
    if !request.target.subresource().is_empty() {
        resource = format!("{resource}/{}", request.target.subresource());
    }
    let place = if request.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", request.namespace)
    };
    let quoted = if request.name.is_empty() {
        String::new()
    } else {
        format!(" \"{}\"", request.name)
    };
    let message = format!(
        "{}{quoted} is forbidden: User \"{user}\" cannot {} resource \"{resource}\" in API group \
         \"{}\" {place}",
        kind.group_resource(),
        request.verb.name(),
        kind.group
    );
    ApiError {
        details: Some(details(&request.name, kind.group, kind.plural)),
        ..ApiError::new(403, "Forbidden", message)
    }
}
