//! The test functions of the workspace: where each stands and by which path it is run.

use crate::repository::SourceFile;

/// One function with a test attribute.
#[derive(Debug, PartialEq, Eq)]
pub struct TestFunction {
    /// The file, from the repository's root.
    pub file: String,
    /// Modules and function, `["upstream", "list", "test_x", "selects_all"]`: those of the file's
    /// path below `src` or `tests`, then those written in the file.
    pub path: Vec<String>,
}

/// Every test function of a file formatted by rustfmt.
pub fn test_functions(file: &SourceFile) -> Vec<TestFunction> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut is_test = false;
    for line in file.text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.starts_with("#[") {
            is_test |= is_test_attribute(code);
        } else if let Some(name) = function_name(code) {
            if is_test {
                let inline = open.iter().map(|(_, module)| *module);
                let path = file_modules(&file.path).chain(inline).chain([name]);
                found.push(TestFunction {
                    file: file.path.clone(),
                    path: path.map(str::to_owned).collect(),
                });
            }
            is_test = false;
        } else if let Some(name) = module_name(code) {
            open.push((indent, name));
            is_test = false;
        } else if code == "}" && open.last().is_some_and(|(at, _)| *at == indent) {
            open.pop();
        } else if !code.is_empty() && !code.starts_with("//") {
            is_test = false;
        }
    }
    found
}

/// `#[test]`, `#[tokio::test]`, `#[tokio::test(start_paused = true)]`.
fn is_test_attribute(code: &str) -> bool {
    let name = code.trim_start_matches("#[").split(['(', ']']).next();
    name.is_some_and(|name| name == "test" || name.ends_with("::test"))
}

/// The name that a line declares a function by.
fn function_name(code: &str) -> Option<&str> {
    let declaration = code.split_once("fn ").filter(|(before, _)| {
        before
            .split_whitespace()
            .all(|word| word.starts_with("pub") || word == "async" || word == "const")
    });
    declaration.and_then(|(_, rest)| rest.split(['(', '<']).next())
}

/// The name of the module that a line opens.
fn module_name(code: &str) -> Option<&str> {
    let code = code.strip_suffix(" {")?;
    let (before, name) = code.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// The modules that a path stands for, `tests/binaries/main.rs` none but `binaries`.
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
    fn functions_are_found_under_the_modules_of_file_and_text() {
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

    /// Says why.
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
    fn the_root_file_of_a_test_binary_is_no_module() {
        let file = SourceFile::new("test/a/tests/b/main.rs", "#[test]\nfn one() {}\n");
        assert_eq!(test_functions(&file)[0].path, ["b", "one"]);
    }
}
