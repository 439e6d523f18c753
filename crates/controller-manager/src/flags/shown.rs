//! Flag values for `/flagz`.

use super::{argv, command};

/// Types whose values Go prints in brackets.
const BRACKETED: [&str; 2] = ["strings", "namedCertKey"];
/// Flags that print something; they are not settings.
const PRINT_FLAGS: [&str; 3] = ["generate", "help", "version"];

/// Name and value of every flag, sorted by name: values set by the argument vector, defaults for
/// the others.
///
/// # Errors
///
/// Those of [`parse`](super::parse).
///
/// Upstream: `NamedFlagSetsReader.GetFlagz`.
pub(crate) fn shown(arguments: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let mut command = command();
    let arguments = argv::read(&command, arguments)?;
    let matches = command.try_get_matches_from_mut(arguments.flags)?;
    let mut all: Vec<(String, String)> = command
        .get_arguments()
        .filter_map(|arg| {
            let name = arg.get_long().filter(|name| !PRINT_FLAGS.contains(name))?;
            let raw = matches.get_raw(arg.get_id().as_str());
            let values: Vec<_> = raw
                .into_iter()
                .flatten()
                .map(|value| value.to_string_lossy())
                .collect();
            let value = values.join(",");
            let bracketed = BRACKETED.contains(&argv::value_name(arg));
            let value = if bracketed {
                format!("[{value}]")
            } else {
                value
            };
            Some((name.to_owned(), value))
        })
        .collect();
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flagz_shows_values_and_defaults() {
        let arguments = [
            "--leader_elect=false",
            "-v=4",
            "--controllers=*,-x",
            "--profiling",
        ];
        let shown = shown(&arguments.map(str::to_owned)).unwrap();
        let value = |name: &str| {
            let found = shown.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        for (name, expected) in [
            ("leader-elect", Some("false")),
            ("v", Some("4")),
            ("controllers", Some("[*,-x]")),
            ("profiling", Some("true")),
            ("secure-port", Some("10257")),
            ("kubeconfig", Some("")),
            ("tls-sni-cert-key", Some("[]")),
            ("generate", None),
            ("help", None),
            ("version", None),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        assert!(shown.is_sorted());
    }
}
