//! Messages about values of a wrong type in the result of a strategic merge patch, which
//! upstream reads without JSON.

use kube_apimachinery::schema::{Kind, find_type};

/// Returns the message for a value that JSON decoding reports with `why`; `None` for another error.
///
/// Upstream: `fromUnstructured`.
pub(super) fn mismatch(why: &str) -> Option<String> {
    let (found, into) = why
        .strip_prefix("json: cannot unmarshal ")?
        .split_once(" into Go ")?;
    let (field, of) = into.rsplit_once(" of type ")?;
    if is_read_as_json(field) {
        return Some(format!(
            "json: cannot unmarshal {found} into Go value of type {of}"
        ));
    }
    let found = match found.split_once(' ') {
        Some(("number", literal)) if literal.contains(['.', 'e', 'E']) => "float64",
        _ if found.starts_with("number") => "int64",
        _ if found == "object" => "map",
        _ if found == "array" => "slice",
        _ => found,
    };
    let is_integer = of.starts_with("int");
    Some(match (found, of) {
        (_, of) if of.starts_with("[]") => format!("cannot restore slice from {found}"),
        (_, of) if of.starts_with("map[") => format!("cannot restore map from {found}"),
        (_, of) if of.contains('.') => format!("cannot restore struct from: {found}"),
        ("int64", "string") => format!("cannot convert {found} to {of}"),
        ("float64", of) if is_integer => format!("cannot convert {found} to {of}"),
        (_, of) => format!("unrecognized type: {of}"),
    })
}

/// Returns true if upstream reads a field (`struct field Type.path.name`) as JSON all the same.
fn is_read_as_json(field: &str) -> bool {
    let path = field.strip_prefix("struct field ").unwrap_or_default();
    let holder = path.split('.').next().and_then(find_type);
    let name = path.rsplit('.').next().unwrap_or_default();
    let kind = holder
        .and_then(|holder| holder.field(name))
        .map(|field| field.kind);
    matches!(kind, Some(Kind::IntOrString | Kind::MicroTime | Kind::Time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_types_of_go() {
        let of = |found: &str, of: &str| {
            let why =
                format!("json: cannot unmarshal {found} into Go struct field A.b of type {of}");
            mismatch(&why).unwrap()
        };
        assert_eq!(of("string", "int32"), "unrecognized type: int32");
        assert_eq!(of("number", "string"), "cannot convert int64 to string");
        assert_eq!(of("number 1.5", "int32"), "cannot convert float64 to int32");
        assert_eq!(of("string", "v1.A"), "cannot restore struct from: string");
        assert_eq!(of("object", "[]v1.A"), "cannot restore slice from map");
        assert_eq!(
            of("array", "map[string]string"),
            "cannot restore map from slice"
        );
        assert_eq!(mismatch("no kind"), None);
        let why = "json: cannot unmarshal number into Go struct field \
                   PodCondition.status.conditions.lastTransitionTime of type string";
        assert_eq!(
            mismatch(why).unwrap(),
            "json: cannot unmarshal number into Go value of type string"
        );
    }
}
