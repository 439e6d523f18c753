//! Pieces of Rust source as tokens: attributes, items, paths, impl blocks.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The first words of items and statements, after the visibility. An item ends with `;` or a block.
const ITEMS: [&str; 13] = [
    "mod", "use", "fn", "struct", "enum", "impl", "trait", "const", "static", "type", "async",
    "let", "extern",
];

/// The keywords of types and traits.
const TYPES: [&str; 4] = ["struct", "enum", "union", "trait"];

/// The segments of a path, `["crate", "rest", "watch"]`.
pub(super) type Segments = Vec<String>;

/// An inherent or trait impl block.
pub(super) struct ImplBlock {
    /// The path of the type, as written.
    pub(super) of: Segments,
    /// The path of the trait, as written; empty for an inherent block.
    pub(super) of_trait: Segments,
    /// The content of its braces.
    pub(super) body: Vec<TokenTree>,
}

/// The attribute at the start of these tokens: the tokens in its brackets, its length in tokens,
/// and whether it is one of the whole module.
pub(super) fn attribute(tokens: &[TokenTree]) -> Option<(Vec<TokenTree>, usize, bool)> {
    if !is_punct(tokens.first(), '#') {
        return None;
    }
    let is_inner = is_punct(tokens.get(1), '!');
    let at = 1 + usize::from(is_inner);
    match tokens.get(at)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some((trees(group.stream()), at + 1, is_inner))
        }
        _ => None,
    }
}

/// `cfg(test)`; not `cfg(any(test, feature = "testing"))`, whose code other crates use.
pub(super) fn is_test_gate(attribute: &[TokenTree]) -> bool {
    let [TokenTree::Ident(name), TokenTree::Group(condition)] = attribute else {
        return false;
    };
    let words = condition.to_string();
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    name == "cfg"
        && words.clone().any(|word| word == "test")
        && !words.any(|word| word == "testing" || word == "not")
}

/// The file that `#[path = "x.rs"]` names.
pub(super) fn path_attribute(attribute: &[TokenTree]) -> Option<String> {
    match attribute {
        [TokenTree::Ident(name), _, TokenTree::Literal(file)] if name == "path" => {
            Some(file.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// The length in tokens of the first item, statement, field or arm.
pub(super) fn item_length(tokens: &[TokenTree]) -> usize {
    let attributes = std::iter::successors(Some(0), |at| {
        attribute(&tokens[*at..]).map(|(_, length, _)| at + length)
    });
    let start = attributes.last().unwrap_or_default();
    let tokens = &tokens[start..];
    let is_item = tokens.iter().take(3).any(
        |token| matches!(token, TokenTree::Ident(word) if ITEMS.iter().any(|item| word == item)),
    );
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(Some(token), ';') || (!is_item && is_punct(Some(token), ',')),
    };
    let end = tokens.iter().position(ends);
    start + end.map_or(tokens.len(), |end| end + 1)
}

/// The path of plain segments at the beginning of these tokens, and how many tokens it is.
pub(super) fn simple_path(tokens: &[TokenTree]) -> (Segments, usize) {
    let mut path = Segments::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(segment)) = tokens.get(at) {
        path.push(segment.to_string());
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        if !matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Every path that a `use` tree imports, with the name that it gets.
pub(super) fn use_paths(tree: &[TokenTree]) -> Vec<(Segments, String)> {
    let tree = match tree {
        [TokenTree::Punct(first), TokenTree::Punct(_), rest @ ..] if first.as_char() == ':' => rest,
        tree => tree,
    };
    let (prefix, length) = simple_path(tree);
    let tail = tree.get(length..).unwrap_or_default();
    let last = prefix.last().cloned().unwrap_or_default();
    match tail.last() {
        Some(TokenTree::Group(group)) => {
            let inner = trees(group.stream());
            let parts = inner.split(|token| is_punct(Some(token), ','));
            let parts = parts.filter(|part| !part.is_empty()).flat_map(use_paths);
            let joined = parts.map(|(path, name)| {
                if path == ["self"] {
                    (prefix.clone(), last.clone())
                } else {
                    (prefix.iter().cloned().chain(path).collect(), name)
                }
            });
            joined.collect()
        }
        Some(TokenTree::Ident(alias)) if tail.len() == 2 => vec![(prefix, alias.to_string())],
        Some(token) if is_punct(Some(token), '*') => vec![(prefix, "*".to_owned())],
        _ => vec![(prefix, last)],
    }
}

/// The name of the type or trait that these tokens declare, and the paths that its body names.
pub(super) fn type_declaration(tokens: &[TokenTree]) -> Option<(String, Vec<Segments>)> {
    let [TokenTree::Ident(keyword), TokenTree::Ident(name), rest @ ..] = tokens else {
        return None;
    };
    if !TYPES.iter().any(|word| keyword == word) {
        return None;
    }
    let end = rest.iter().position(|token| {
        let is_body =
            matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        is_body || is_punct(Some(token), ';')
    });
    let mut paths = Vec::new();
    let declared = end.and_then(|end| rest.get(..=end));
    collect_paths(declared.unwrap_or_default(), &mut paths);
    Some((name.to_string(), paths))
}

fn collect_paths(tokens: &[TokenTree], paths: &mut Vec<Segments>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let (path, length) = simple_path(&tokens[at..]);
        if let TokenTree::Group(group) = token {
            collect_paths(&trees(group.stream()), paths);
        }
        if !path.is_empty() {
            paths.push(path);
        }
        at += length.max(1);
    }
}

/// The impl block at the start of these tokens.
pub(super) fn impl_block(tokens: &[TokenTree]) -> Option<ImplBlock> {
    let is_impl = matches!(tokens.first(), Some(TokenTree::Ident(word)) if word == "impl");
    if !is_impl {
        return None;
    }
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let is_end = |token: &TokenTree| is_body(token) || is_punct(Some(token), ';');
    let end = tokens.iter().position(is_end)?;
    let TokenTree::Group(body) = &tokens[end] else {
        return None;
    };
    let header = without_generics(&tokens[1..end]);
    let is_for = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "for");
    let of_trait = header.iter().position(is_for);
    let named = &header[of_trait.map_or(0, |at| at + 1)..];
    Some(ImplBlock {
        of: simple_path(named).0,
        of_trait: simple_path(&header[..of_trait.unwrap_or(0)]).0,
        body: trees(body.stream()),
    })
}

/// The tokens outside of angle brackets.
fn without_generics(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_arrow = at > 0 && is_punct(tokens.get(at - 1), '-');
        if is_punct(Some(token), '<') {
            depth += 1;
        } else if is_punct(Some(token), '>') && !is_arrow {
            depth = depth.saturating_sub(1);
        } else if depth == 0 {
            found.push(token.clone());
        }
    }
    found
}

/// The names of the functions directly in a body, with their own bodies.
pub(super) fn functions(body: &[TokenTree]) -> BTreeMap<String, String> {
    let is_body = |token: &&TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let functions = body
        .windows(2)
        .enumerate()
        .filter_map(|(at, pair)| match pair {
            [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "fn" => {
                let body = body[at..].iter().find(is_body);
                Some((
                    name.to_string(),
                    body.map_or_else(String::new, ToString::to_string),
                ))
            }
            _ => None,
        });
    functions.collect()
}

pub(super) fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

pub(super) fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}
