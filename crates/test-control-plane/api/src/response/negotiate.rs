//! Content negotiation: the format of a response and the form of its objects.
//!
//! Negotiation has two checks. The first compares the media types of the `Accept` header, without
//! their parameters, with those of the route. The second finds the first clause whose parameters
//! the server supports. Each check has its own error text.

mod accept;

use serde_json::json;

use crate::decode::MEDIA_TYPES;
use crate::kinds::{Kind, Verb};
use crate::query::Query;
use crate::response::represent::Representation;
use crate::response::table::IncludeObject;
use crate::status::{ApiError, ApiResult};

pub(crate) use accept::{Clause, clauses};

/// The media types of streams.
const STREAM_TYPES: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The media type of aggregated discovery.
pub const AGGREGATED_DISCOVERY: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The format of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf, for clients that prefer it by its quality.
    Protobuf,
}

/// The negotiated format and form of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiatedFormat {
    /// The format of the body.
    pub format: Format,
    /// True for indented output.
    pub pretty: bool,
    /// The form of objects.
    pub representation: Representation,
}

/// Negotiates the format of errors and of other responses without forms: YAML on request, else JSON.
pub fn plain(accept: &str) -> NegotiatedFormat {
    let whole = |clause: &Clause<'_>| is_unconverted(clause).then_some(Representation::Whole);
    best(&clauses(accept), whole).unwrap_or_default()
}

/// Returns the best clause whose form is known. Of formats with the same quality, JSON and YAML win
/// over protobuf, because the store keeps JSON.
fn best(
    clauses: &[Clause<'_>],
    form: impl Fn(&Clause<'_>) -> Option<Representation>,
) -> Option<NegotiatedFormat> {
    let is_alike = |a: &Clause<'_>, b: &Clause<'_>| a.quality().total_cmp(&b.quality()).is_eq();
    clauses.chunk_by(is_alike).find_map(|alike| {
        let find = |wanted: fn(&Clause<'_>, Representation) -> Option<NegotiatedFormat>| {
            let mut clauses = alike.iter();
            clauses.find_map(|clause| wanted(clause, form(clause)?))
        };
        find(wanted).or_else(|| find(protobuf))
    })
}

fn plain_clause(accept: &str) -> Option<NegotiatedFormat> {
    let clauses = clauses(accept);
    let mut plain = clauses.iter().filter(|clause| is_unconverted(clause));
    plain.find_map(|clause| wanted(clause, Representation::Whole))
}

/// Negotiates the format and form of a response with objects.
///
/// # Errors
///
/// 406 if the server supports none of the requested formats; 400 for a bad `includeObject`.
pub fn objects(
    kind: &Kind,
    accept: &str,
    verb: Verb,
    query: &Query,
) -> ApiResult<NegotiatedFormat> {
    if accept.is_empty() {
        return Ok(NegotiatedFormat::default());
    }
    // Routes of custom resources take any media type; only their handlers negotiate.
    if kind.custom.is_none() {
        check_route(accept, matches!(verb, Verb::List | Verb::Watch))?;
    }
    let found = best(&clauses(accept), |clause| {
        let found = form(clause)?;
        // Custom resources have no protobuf form, only their metadata has one.
        let is_unknown = kind.custom.is_some()
            && found == Representation::Whole
            && clause.sub == "vnd.kubernetes.protobuf";
        (!is_unknown).then_some(found)
    });
    let mut found = found.ok_or_else(|| only_accepted(MEDIA_TYPES))?;
    if let Representation::Table { include, .. } = &mut found.representation {
        *include = IncludeObject::parse(query.get("includeObject"))?;
    }
    if verb == Verb::Watch && found.format == Format::Yaml {
        return Err(only_accepted(STREAM_TYPES));
    }
    Ok(found)
}

/// Returns true if the client accepts aggregated discovery, even as its second choice.
pub fn wants_aggregated_discovery(accept: &str) -> bool {
    clauses(accept).iter().any(|clause| {
        wanted(clause, Representation::Whole).is_some()
            && clause.parameter("g") == Some("apidiscovery.k8s.io")
            && clause.parameter("v") == Some("v2")
            && clause.parameter("as") == Some("APIGroupDiscoveryList")
    })
}

/// Returns true if the client accepts JSON in any form.
pub fn takes_json(accept: &str) -> bool {
    let clauses = clauses(accept);
    clauses.iter().any(|c| c.takes("application", "json"))
}

/// Returns true if the client names the media type, without wildcards.
pub fn names(accept: &str, main: &str, sub: &str) -> bool {
    let clauses = clauses(accept);
    clauses.iter().any(|c| c.main == main && c.sub == sub)
}

/// Checks that the client accepts a response without forms.
///
/// # Errors
///
/// 406 if the client accepts only forms.
pub fn check_plain(accept: &str) -> ApiResult<()> {
    if accept.is_empty() || plain_clause(accept).is_some() {
        return Ok(());
    }
    Err(only_accepted(MEDIA_TYPES))
}

/// The extra media type of the log route. The route check accepts it, but the form check then
/// rejects it.
const LOG_TYPE: &str = "text/plain";

/// Checks that the client accepts a media type of the log route, and a form of objects.
///
/// # Errors
///
/// 406 if it does not.
pub fn logs(accept: &str) -> ApiResult<()> {
    check_route_of(accept, &format!("{LOG_TYPE}, {MEDIA_TYPES}"))?;
    let is_object = |clause: &Clause<'_>| {
        let form = form(clause)?;
        wanted(clause, form).or_else(|| protobuf(clause, form))
    };
    let mut clauses = clauses(accept).into_iter();
    if accept.is_empty() || clauses.any(|clause| is_object(&clause).is_some()) {
        return Ok(());
    }
    Err(only_accepted(MEDIA_TYPES))
}

/// Checks that the route has a requested media type. Partial wildcards don't count.
///
/// # Errors
///
/// 406 if the route has none of them.
pub fn check_route(accept: &str, streams: bool) -> ApiResult<()> {
    if streams {
        check_route_of(accept, &format!("{MEDIA_TYPES}, {STREAM_TYPES}"))
    } else {
        check_route_of(accept, MEDIA_TYPES)
    }
}

fn check_route_of(accept: &str, available: &str) -> ApiResult<()> {
    let mut types = accept
        .split(',')
        .map(|clause| clause.split(';').next().unwrap_or_default().trim());
    if accept.is_empty() || types.any(|t| t == "*/*" || available.split(", ").any(|m| m == t)) {
        return Ok(());
    }
    Err(ApiError {
        details: Some(json!({})),
        ..ApiError::not_acceptable(format!(
            "406: Not Acceptable\n\nAvailable representations: {available}"
        ))
    })
}

fn only_accepted(types: &str) -> ApiError {
    ApiError::not_acceptable(format!(
        "only the following media types are accepted: {types}"
    ))
}

fn wanted(clause: &Clause<'_>, representation: Representation) -> Option<NegotiatedFormat> {
    let format = if clause.takes("application", "json") {
        Format::Json
    } else if clause.takes("application", "yaml") {
        Format::Yaml
    } else {
        return None;
    };
    // Streams are JSON lines, and the only stream is a watch.
    match clause.parameter("stream") {
        None | Some("") => {}
        Some("watch") if format == Format::Json => {}
        Some(_) => return None,
    }
    Some(NegotiatedFormat {
        format,
        pretty: clause.parameter("pretty") == Some("1"),
        representation,
    })
}

fn protobuf(clause: &Clause<'_>, representation: Representation) -> Option<NegotiatedFormat> {
    let stream = clause.parameter("stream").unwrap_or_default();
    let is_taken = clause.takes("application", "vnd.kubernetes.protobuf");
    (is_taken && matches!(stream, "" | "watch")).then_some(NegotiatedFormat {
        format: Format::Protobuf,
        pretty: false,
        representation,
    })
}

fn is_unconverted(clause: &Clause<'_>) -> bool {
    let named = ["as", "g", "v"].map(|name| clause.parameter(name));
    named.iter().all(Option::is_none)
}

/// Returns the form that a clause requests, or `None` if objects don't have it.
fn form(clause: &Clause<'_>) -> Option<Representation> {
    if is_unconverted(clause) {
        return Some(Representation::Whole);
    }
    let version = match (clause.parameter("g"), clause.parameter("v")) {
        (Some("meta.k8s.io"), Some("v1")) => "meta.k8s.io/v1",
        (Some("meta.k8s.io"), Some("v1beta1")) => "meta.k8s.io/v1beta1",
        _ => return None,
    };
    match clause.parameter("as")? {
        "Table" => Some(Representation::Table {
            version,
            include: IncludeObject::Metadata,
        }),
        "PartialObjectMetadata" => Some(Representation::Metadata { version }),
        "PartialObjectMetadataList" => Some(Representation::MetadataList { version }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const FOO: &str = "application/json;as=Foo;v=v1;g=meta.k8s.io";

    fn asked(accept: &str, verb: Verb) -> ApiResult<NegotiatedFormat> {
        objects(&KINDS[0], accept, verb, &Query::default())
    }

    #[test]
    fn unknown_form_fails_only_without_alternative() {
        let wanted = asked(&format!("{FOO},{TABLE},application/json"), Verb::Get).unwrap();
        assert!(matches!(
            wanted.representation,
            Representation::Table { .. }
        ));
        let message = asked(FOO, Verb::Get).unwrap_err().message;
        let text = "only the following media types are accepted: application/json";
        assert!(message.starts_with(text), "{message}");
    }

    #[test]
    fn route_check_rejects_unknown_media_type() {
        for accept in ["text/html", "application/cbor", "application/*"] {
            let error = asked(accept, Verb::Get).unwrap_err();
            assert_eq!(error.code, 406);
            assert!(
                error.message.ends_with("vnd.kubernetes.protobuf"),
                "{accept}"
            );
        }
        let error = asked("text/html", Verb::List).unwrap_err();
        assert!(error.message.ends_with("protobuf;stream=watch"));
        assert_eq!(error.details, Some(json!({})));
    }

    #[test]
    fn protobuf_wins_only_with_higher_quality() {
        let accept = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(
            asked(accept, Verb::Get).unwrap(),
            NegotiatedFormat::default()
        );
        assert_eq!(plain(accept), NegotiatedFormat::default());
        for (accept, verb) in [
            ("application/vnd.kubernetes.protobuf", Verb::Get),
            (
                "application/json;q=0.9,application/vnd.kubernetes.protobuf",
                Verb::Watch,
            ),
            (
                "application/vnd.kubernetes.protobuf;stream=watch",
                Verb::Watch,
            ),
        ] {
            assert_eq!(asked(accept, verb).unwrap().format, Format::Protobuf);
            assert_eq!(plain(accept).format, Format::Protobuf);
        }
        assert!(asked("application/vnd.kubernetes.protobuf;as=Foo", Verb::Get).is_err());
    }

    #[test]
    fn higher_quality_wins() {
        let accept = "application/json;q=0.4, application/yaml;q=0.6, */*;q=0.1";
        assert_eq!(asked(accept, Verb::Get).unwrap().format, Format::Yaml);
        assert_eq!(asked("*/*", Verb::Get).unwrap().format, Format::Json);
    }

    #[test]
    fn watch_rejects_yaml() {
        let error = asked("application/yaml", Verb::Watch).unwrap_err();
        assert!(error.message.contains("application/json;stream=watch, "));
        assert!(asked("application/json;stream=watch", Verb::Watch).is_ok());
        assert!(asked("application/json;stream=other", Verb::Watch).is_err());
    }

    #[test]
    fn errors_are_yaml_on_request_else_json() {
        assert_eq!(plain("application/yaml").format, Format::Yaml);
        for accept in ["", "text/html", TABLE] {
            assert_eq!(plain(accept).format, Format::Json, "{accept}");
        }
    }
}
