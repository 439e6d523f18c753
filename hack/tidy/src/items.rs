//! Items of a Rust file, with their documentation.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The file's own module, whose documentation begins with `//!`.
    File,
    /// A function or a method.
    Function,
    /// A type, trait, constant, field, variant or inline module.
    Other,
}

/// One item.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Its kind.
    pub kind: Kind,
    /// Its name, after the type or trait that contains it: `Queue::add`. Empty for a file.
    pub name: String,
    /// Its documentation, without the marks of comments.
    pub docs: String,
}

/// Words before the keyword of an item.
const QUALIFIERS: [&str; 4] = ["async", "default", "extern", "unsafe"];

/// Returns the items of a file in their order, without those in function bodies. A text that is no
/// Rust has none.
pub fn items(text: &str) -> Vec<Item> {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        return Vec::new();
    };
    let mut walk = Walk {
        items: vec![Item {
            kind: Kind::File,
            name: String::new(),
            docs: String::new(),
        }],
    };
    walk.level(tokens, "", false);
    walk.items
}

struct Walk {
    items: Vec<Item>,
}

impl Walk {
    /// Reads the items of a file, of an inline module, or of the type `owner`; `has_fields` if that
    /// is a struct or an enum.
    fn level(&mut self, tokens: TokenStream, owner: &str, has_fields: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut docs = String::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at + 1..];
            if let Some((attribute, length, is_inner)) = attribute(&tokens[at..]) {
                at += length;
                match documentation(&attribute) {
                    Some(line) if is_inner => self.items[0].docs.push_str(&(line + "\n")),
                    Some(line) => docs.push_str(&(line + "\n")),
                    None => {}
                }
                continue;
            }
            at += 1;
            let TokenTree::Ident(word) = token else {
                continue;
            };
            let word = word.to_string();
            if word == "pub" {
                at += usize::from(matches!(rest.first(), Some(TokenTree::Group(_))));
                continue;
            }
            let is_function = word == "const" && rest.first().is_some_and(|it| is_word(it, "fn"));
            if QUALIFIERS.contains(&word.as_str()) || is_function {
                continue;
            }
            let name = match word.as_str() {
                "impl" => impl_target(rest),
                "use" | "let" | "macro_rules" => String::new(),
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "static" | "const"
                | "mod" => rest.first().map(ToString::to_string).unwrap_or_default(),
                _ if has_fields => word.clone(),
                _ => continue,
            };
            let (length, body) = extent(rest, has_fields);
            at += length;
            let docs = std::mem::take(&mut docs);
            if !name.is_empty() && word != "impl" {
                self.items.push(Item {
                    kind: if word == "fn" {
                        Kind::Function
                    } else {
                        Kind::Other
                    },
                    name: if owner.is_empty() {
                        name.clone()
                    } else {
                        format!("{owner}::{name}")
                    },
                    docs,
                });
            }
            match (word.as_str(), body) {
                ("mod", Some(body)) => self.level(body, "", false),
                ("impl" | "trait", Some(body)) => self.level(body, &name, false),
                ("struct" | "enum" | "union", Some(body)) => self.level(body, &name, true),
                _ => {}
            }
        }
    }
}

/// Number of tokens of an item after its keyword, and its block. A field or variant ends with a
/// comma.
fn extent(tokens: &[TokenTree], is_field: bool) -> (usize, Option<TokenStream>) {
    let mut angles = Angles::default();
    for (index, token) in tokens.iter().enumerate() {
        let open = angles.open(token);
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_field => {
                return (index + 1, Some(group.stream()));
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' && !is_field => {
                return (index + 1, None);
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' && is_field && !open => {
                return (index + 1, None);
            }
            _ => {}
        }
    }
    (tokens.len(), None)
}

/// Depth of angle brackets.
#[derive(Default)]
struct Angles {
    depth: usize,
    after_dash: bool,
}

impl Angles {
    /// Reads a token, and returns true inside of angle brackets.
    fn open(&mut self, token: &TokenTree) -> bool {
        let mark = match token {
            TokenTree::Punct(mark) => mark.as_char(),
            _ => ' ',
        };
        match mark {
            '<' => self.depth += 1,
            '>' if !self.after_dash => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.after_dash = mark == '-' || mark == '=';
        self.depth > 0
    }
}

/// Type of an `impl` block: the last name of the path before the block, after `for` if there is one.
fn impl_target(tokens: &[TokenTree]) -> String {
    let mut angles = Angles::default();
    let mut target = String::new();
    for token in tokens {
        if angles.open(token) {
            continue;
        }
        match token {
            TokenTree::Ident(word) if word == "where" => break,
            TokenTree::Ident(word) if word == "for" => target.clear(),
            TokenTree::Ident(word) => target = word.to_string(),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            _ => {}
        }
    }
    target
}

/// The attribute that begins here, its number of tokens, and true for an inner one.
fn attribute(tokens: &[TokenTree]) -> Option<(TokenStream, usize, bool)> {
    let is_mark = |at: usize, mark: char| matches!(tokens.get(at), Some(TokenTree::Punct(it)) if it.as_char() == mark);
    if !is_mark(0, '#') {
        return None;
    }
    let is_inner = is_mark(1, '!');
    let at = 1 + usize::from(is_inner);
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((group.stream(), at + 1, is_inner))
        }
        _ => None,
    }
}

/// Text of a documentation attribute.
fn documentation(attribute: &TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    match tokens.as_slice() {
        [name, _, TokenTree::Literal(text)] if is_word(name, "doc") => {
            let text = text.to_string();
            let text = text.trim_matches('"').replace("\\\"", "\"");
            Some(text.replace("\\\\", "\\").trim().to_owned())
        }
        _ => None,
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
//! A file.
//!
//! Its end.

/// Does "it".
#[expect(clippy::x, reason = "why")]
pub async fn do_it<T>(x: T) { fn inner() {} }

pub(crate) const MAX_SIZE: usize = 1;
const fn two() {}

/// A queue.
pub struct Queue<K> {
    /// Its depth.
    pub depth: BTreeMap<K, usize>,
    other: K,
}

impl<K: Ord, F: Fn() -> K> crate::Work<K> for Queue<K> where K: Clone {
    /// Adds.
    fn add(&self) {}
}

enum Kind {
    /// One.
    One { x: u8 },
    Two,
}

mod tests {
    #[tokio::test(start_paused = true)]
    async fn it_works() {}
}
"#;

    #[test]
    fn items_have_names_and_documentation() {
        let found = items(TEXT);
        let names: Vec<&str> = found.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "",
                "do_it",
                "MAX_SIZE",
                "two",
                "Queue",
                "Queue::depth",
                "Queue::other",
                "Queue::add",
                "Kind",
                "Kind::One",
                "Kind::Two",
                "tests",
                "it_works",
            ]
        );
        assert_eq!(found[0].docs, "A file.\n\nIts end.\n");
        assert_eq!(found[1].docs, "Does \"it\".\n");
        assert_eq!(found[1].kind, Kind::Function);
        assert_eq!(found[3].kind, Kind::Function);
        assert_eq!(found[2].kind, Kind::Other);
        assert_eq!(found[7].docs, "Adds.\n");
        assert_eq!(found[9].docs, "One.\n");
    }

    #[test]
    fn other_texts_have_no_items() {
        assert!(items("fn (").is_empty());
    }
}
