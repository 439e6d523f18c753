//! The test functions of the workspace, with file and module path.

use crate::repository::SourceFile;

/// One function with a test attribute.
#[derive(Debug, PartialEq, Eq)]
pub struct TestFunction {
    /// The file, from the repository's root.
    pub file: String,
    /// Modules and function, `["upstream", "list", "test_x", "selects_all"]`: from the file's path
    /// below `src` or `tests`, then from the file.
    pub path: Vec<String>,
    /// Attribute of the function, a module around it or the file that may skip it, for example
    /// `#[cfg(unix)]`.
    pub hindrance: Option<String>,
}

/// An inline module around the current line.
struct Module<'a> {
    indent: usize,
    name: &'a str,
    hindrance: Option<String>,
}

/// Every test function of a file formatted by rustfmt.
pub fn test_functions(file: &SourceFile) -> Vec<TestFunction> {
    let mut found = Vec::new();
    let mut open: Vec<Module<'_>> = Vec::new();
    let mut of_file: Option<String> = None;
    let mut attributes: Vec<String> = Vec::new();
    let mut lines = file.text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.starts_with("#[") || code.starts_with("#![") {
            let attribute = whole_attribute(code, &mut lines);
            if code.starts_with("#!") {
                of_file = of_file.or_else(|| hindrance(&[attribute]));
            } else {
                attributes.push(attribute);
            }
        } else if let Some(name) = function_name(code) {
            if attributes.iter().any(|attribute| is_test(attribute)) {
                let inline = open.iter().map(|module| module.name);
                let path = file_modules(&file.path).chain(inline).chain([name]);
                let around = || open.iter().find_map(|module| module.hindrance.clone());
                found.push(TestFunction {
                    file: file.path.clone(),
                    path: path.map(str::to_owned).collect(),
                    hindrance: hindrance(&attributes)
                        .or_else(around)
                        .or_else(|| of_file.clone()),
                });
            }
            attributes.clear();
        } else if let Some(name) = module_name(code) {
            open.push(Module {
                indent,
                name,
                hindrance: hindrance(&attributes),
            });
            attributes.clear();
        } else if code == "}" && open.last().is_some_and(|module| module.indent == indent) {
            open.pop();
        } else if !code.is_empty() && !code.starts_with("//") {
            attributes.clear();
        }
    }
    found
}

/// Joins the attribute that begins on a line.
fn whole_attribute<'a>(first: &str, rest: &mut impl Iterator<Item = &'a str>) -> String {
    let mut attribute = first.to_owned();
    while !attribute.ends_with(']') {
        let Some(line) = rest.next() else {
            break;
        };
        attribute.push_str(line.trim_start());
    }
    attribute
}

/// Name of an attribute: `tokio::test` for `#[tokio::test(start_paused = true)]`.
fn attribute_name(attribute: &str) -> &str {
    let inner = attribute.trim_start_matches(['#', '!', '[']);
    inner.split(['(', ']', ' ']).next().unwrap_or_default()
}

/// Returns true for `#[test]`, `#[tokio::test]`, `#[tokio::test(start_paused = true)]`.
fn is_test(attribute: &str) -> bool {
    let name = attribute_name(attribute);
    name == "test" || name.ends_with("::test")
}

/// The first attribute that may skip a test; `cfg(test)` does not.
fn hindrance(attributes: &[String]) -> Option<String> {
    let hinders = |attribute: &&String| {
        ["ignore", "cfg", "cfg_attr"].contains(&attribute_name(attribute))
            && !attribute.ends_with("[cfg(test)]")
    };
    attributes.iter().find(hinders).cloned()
}

/// Name of the function declared by a line.
fn function_name(code: &str) -> Option<&str> {
    let declaration = code.split_once("fn ").filter(|(before, _)| {
        before
            .split_whitespace()
            .all(|word| word.starts_with("pub") || word == "async" || word == "const")
    });
    declaration.and_then(|(_, rest)| rest.split(['(', '<']).next())
}

/// Name of the module opened by a line.
fn module_name(code: &str) -> Option<&str> {
    let code = code.strip_suffix(" {")?;
    let (before, name) = code.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// Modules of a path: for `tests/binaries/main.rs` only `binaries`.
fn file_modules(path: &str) -> impl Iterator<Item = &str> {
    let below = path
        .split_once("/src/")
        .or_else(|| path.split_once("/tests/"))
        .map_or(path, |(_, below)| below);
    below
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| !matches!(*part, "lib" | "main" | "mod"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_contain_modules_of_file_and_text() {
        let text = "\
#[test]
fn one() {
    let x = 1;
}

mod helpers {
    pub(super) fn not_a_test() {}
}

mod inner {
    use super::*;

    /// A comment.
    #[tokio::test(start_paused = true)]
    async fn two() {
        if true {
        }
    }
}

#[tokio::test]
async fn three() {}

fn helper() {}
";
        let found = test_functions(&SourceFile::new("crates/a/src/upstream/x.rs", text));
        let paths: Vec<String> = found.iter().map(|test| test.path.join("::")).collect();
        assert_eq!(
            paths,
            [
                "upstream::x::one",
                "upstream::x::inner::two",
                "upstream::x::three"
            ]
        );
    }

    #[test]
    fn attributes_that_skip_tests_are_reported() {
        let text = "\
#[cfg(test)]
mod inner {
    #[test]
    #[{IGNORE} = \"slow\"]
    fn one() {}

    #[cfg_attr(
        unix,
        ignore
    )]
    #[tokio::test]
    async fn two() {}

    #[cfg(unix)]
    mod deep {
        #[test]
        fn three() {}
    }

    #[test]
    fn four() {}
}
";
        // In two parts, because no source may contain it.
        let text = text.replace("{IGNORE}", concat!("ign", "ore"));
        let hindrances = |text: &str| -> Vec<Option<String>> {
            let found = test_functions(&SourceFile::new("crates/a/src/x.rs", text));
            found.into_iter().map(|test| test.hindrance).collect()
        };
        let some = |attribute: &str| Some(attribute.to_owned());
        assert_eq!(
            hindrances(&text),
            [
                some(concat!("#[ign", "ore = \"slow\"]")),
                some("#[cfg_attr(unix,ignore)]"),
                some("#[cfg(unix)]"),
                None
            ]
        );
        let of_file = hindrances(&format!("#![cfg(unix)]\n\n{text}"));
        assert_eq!(of_file[3], some("#![cfg(unix)]"));
    }

    #[test]
    fn roots_of_test_binaries_are_not_modules() {
        let file = SourceFile::new("test/a/tests/b/main.rs", "#[test]\nfn one() {}\n");
        assert_eq!(test_functions(&file)[0].path, ["b", "one"]);
    }
}
