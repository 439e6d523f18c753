//! The built-in kinds, from their description in `table.txt`.

use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kind::{Field, Kind, Trait};

/// All rows, those of mere bodies included.
pub(crate) static ROWS: LazyLock<Vec<Arc<Kind>>> =
    LazyLock::new(|| parse(include_str!("table.txt")));

/// All served resources.
pub static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    let served = ROWS.iter().filter(|kind| !kind.has(Trait::Bodies));
    served.map(Arc::clone).collect()
});

/// The kind of `/scale`. It is stored with its object.
pub static SCALE: LazyLock<Arc<Kind>> = LazyLock::new(|| row("Scale"));

/// The kind of the bodies of `serviceaccounts/NAME/token`.
pub static TOKEN_REQUEST: LazyLock<Arc<Kind>> = LazyLock::new(|| row("TokenRequest"));

/// The kind of the bodies of `pods/NAME/binding`.
pub static BINDING: LazyLock<Arc<Kind>> = LazyLock::new(|| row("Binding"));

/// The kind of the bodies of `pods/NAME/eviction`.
pub static EVICTION: LazyLock<Arc<Kind>> = LazyLock::new(|| row("Eviction"));

/// Returns the only row of a kind.
fn row(kind: &str) -> Arc<Kind> {
    let found = ROWS.iter().find(|row| row.kind == kind);
    Arc::clone(found.expect("the table has the kinds of bodies"))
}

fn parse(text: &str) -> Vec<Arc<Kind>> {
    let mut rows: Vec<Kind> = Vec::new();
    let mut block = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix("    ") {
            if let Some(row) = rows.last_mut() {
                row.fields.extend(parse_field(field));
            }
        } else if let Some(row) = line.strip_prefix("  ") {
            rows.extend(parse_row(block, row));
        } else {
            block = line;
        }
    }
    rows.into_iter().map(Arc::new).collect()
}

fn parse_row(group_version: &str, line: &str) -> Option<Kind> {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let mut words = line.split(' ');
    let (kind, plural) = (words.next()?, words.next()?);
    let mut row = Kind::plain(group, version, kind, plural);
    for word in words {
        let names = |list: &str| list.split(',').map(str::to_owned).collect();
        match word.split_once(['=', '/']) {
            Some(("", part)) => row.subresources.push(value(part)?),
            Some(("short", list)) => row.short_names = names(list),
            Some(("in", list)) => row.categories = names(list),
            Some(("verbs", list)) => {
                row.verbs = list.split(',').map(value).collect::<Option<_>>()?;
            }
            Some(("named", rule)) => row.name_rule = value(rule)?,
            Some(("rounds", rounds)) => row.rounds = value(rounds)?,
            Some(("status-rounds", rounds)) => row.status_rounds = Some(value(rounds)?),
            Some(_) => return None,
            None if word == "cluster" => row.namespaced = false,
            None => row.traits.push(value(word)?),
        }
    }
    Some(row)
}

fn parse_field(line: &str) -> Option<Field> {
    let mut words = line.split(' ');
    let label = words.next()?;
    let mut field = Field {
        label: label.to_owned(),
        pointer: format!("/{}", label.replace('.', "/")),
        otherwise: None,
        default: String::new(),
    };
    for word in words {
        match word.split_once('=') {
            Some(("or", pointer)) => field.otherwise = Some(pointer.to_owned()),
            Some(("default", text)) => text.clone_into(&mut field.default),
            Some(_) => return None,
            None => word.clone_into(&mut field.pointer),
        }
    }
    Some(field)
}

/// Reads the name of an enum's variant.
fn value<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(Value::from(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        for line in include_str!("table.txt").lines() {
            if let Some(field) = line.strip_prefix("    ") {
                assert!(parse_field(field).is_some(), "{line}");
            } else if let Some(row) = line.strip_prefix("  ") {
                assert!(parse_row("v1", row).is_some(), "{line}");
            }
        }
    }

    #[test]
    fn misspelt_words_are_found() {
        for line in [
            "Pod",
            "Pod pods graceless",
            "Pod pods named=x",
            "Pod pods /x",
            "Pod pods a=b",
        ] {
            assert!(parse_row("v1", line).is_none(), "{line}");
        }
        assert!(parse_field("a.b other=/c").is_none());
    }
}
