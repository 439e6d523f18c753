//! Renderer for the subset of Go templates in the shipped chart: fields of the context, `if`,
//! `with`, `else`, `define`, `include`, `default`, `quote`, `nindent`, `toYaml`. Anything else is
//! an error.

use std::collections::BTreeMap;

use serde_json::Value;

/// Parsed templates: the files and their named definitions.
#[derive(Debug, Default)]
pub(super) struct Templates {
    named: BTreeMap<String, Vec<Node>>,
}

/// A piece of a template.
#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Output(String),
    /// Pipeline, whether its value becomes the dot, and both branches.
    Branch(String, bool, Vec<Node>, Vec<Node>),
}

/// Text, or the content of `{{ }}`.
#[derive(Debug)]
enum Token {
    Text(String),
    Action(String),
}

impl Templates {
    /// Adds a file and its named definitions.
    pub(super) fn add(&mut self, name: &str, text: &str) {
        let mut tokens = tokens(text).into_iter();
        let (nodes, end) = self.parse(&mut tokens);
        assert_eq!(end, "", "{name} has an unmatched else or end");
        self.named.insert(name.to_owned(), nodes);
    }

    /// Renders a template.
    pub(super) fn render(&self, name: &str, context: &Value) -> String {
        let nodes = self.named.get(name);
        let nodes = nodes.unwrap_or_else(|| panic!("no template is called {name}"));
        let mut out = String::new();
        self.write(nodes, context, &mut out);
        out
    }

    /// Parses up to `else`, `end` or the end of input; returns the terminator.
    fn parse(&mut self, tokens: &mut impl Iterator<Item = Token>) -> (Vec<Node>, String) {
        let mut nodes = Vec::new();
        while let Some(token) = tokens.next() {
            let action = match token {
                Token::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Token::Action(action) => action,
            };
            let (word, rest) = action.split_once(' ').unwrap_or((&action, ""));
            match word {
                "else" | "end" => return (nodes, action),
                "if" | "with" => {
                    let (then, end) = self.parse(tokens);
                    let otherwise = match end.as_str() {
                        "end" => Vec::new(),
                        _ => self.parse(tokens).0,
                    };
                    let is_with = word == "with";
                    nodes.push(Node::Branch(rest.to_owned(), is_with, then, otherwise));
                }
                "define" => {
                    let (body, _) = self.parse(tokens);
                    self.named.insert(unquoted(rest).to_owned(), body);
                }
                "range" | "block" | "template" => panic!("{word} is not supported"),
                _ => nodes.push(Node::Output(action)),
            }
        }
        (nodes, String::new())
    }

    fn write(&self, nodes: &[Node], dot: &Value, out: &mut String) {
        for node in nodes {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Output(pipeline) => out.push_str(&printed(&self.value(pipeline, dot))),
                Node::Branch(pipeline, is_with, then, otherwise) => {
                    let value = self.value(pipeline, dot);
                    if !is_true(&value) {
                        self.write(otherwise, dot, out);
                    } else if *is_with {
                        self.write(then, &value, out);
                    } else {
                        self.write(then, dot, out);
                    }
                }
            }
        }
    }

    /// Value of a pipeline, in which each command takes the previous result.
    fn value(&self, pipeline: &str, dot: &Value) -> Value {
        let mut handed: Option<Value> = None;
        for command in pipeline.split('|') {
            let mut words = command.split_whitespace();
            let Some(first) = words.next() else {
                panic!("{pipeline}: empty command");
            };
            let mut arguments: Vec<Value> = words.map(|word| operand(word, dot)).collect();
            arguments.extend(handed.take());
            handed = Some(match (first, arguments.as_slice()) {
                ("include", [name, context]) => self.render(&text(name), context).into(),
                ("toYaml", [value]) => yaml(value).into(),
                ("quote", [value]) => Value::from(printed(value)).to_string().into(),
                ("default", [default, value]) => {
                    let chosen = if is_true(value) { value } else { default };
                    chosen.clone()
                }
                ("nindent", [width, value]) => indented(width, &printed(value)).into(),
                (_, []) => operand(first, dot),
                _ => panic!("{pipeline}: {first} is not supported"),
            });
        }
        handed.unwrap_or_default()
    }
}

/// Splits a template into text and actions; a dash at a brace trims the adjacent whitespace.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (action, after) = after.split_once("}}").expect("braces are closed");
        let (before, action) = match action.strip_prefix('-') {
            Some(action) => (before.trim_end(), action),
            None => (before, action),
        };
        let (action, after) = match action.strip_suffix('-') {
            Some(action) => (action, after.trim_start()),
            None => (action, after),
        };
        tokens.push(Token::Text(before.to_owned()));
        tokens.push(Token::Action(action.trim().to_owned()));
        rest = after;
    }
    tokens.push(Token::Text(rest.to_owned()));
    tokens
}

/// A literal, or a field of the dot; a missing field is null.
fn operand(word: &str, dot: &Value) -> Value {
    if word == "." {
        return dot.clone();
    }
    if let Some(path) = word.strip_prefix('.') {
        let pointer = format!("/{}", path.replace('.', "/"));
        return dot.pointer(&pointer).cloned().unwrap_or_default();
    }
    serde_json::from_str(word).unwrap_or_else(|_| panic!("{word} is not supported"))
}

fn unquoted(word: &str) -> &str {
    word.trim_matches('"')
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Truth of a value: everything except empty values.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => panic!("a value is missing"),
        other => other.to_string(),
    }
}

fn yaml(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).expect("JSON can be written as YAML");
    text.trim_end().to_owned()
}

/// Puts the text on new lines with this indentation.
fn indented(width: &Value, text: &str) -> String {
    let margin = " ".repeat(width.as_u64().and_then(|w| w.try_into().ok()).unwrap_or(0));
    let lines = text.lines().map(|line| format!("\n{margin}{line}"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(text: &str) -> String {
        let mut templates = Templates::default();
        templates.add("file", text);
        let context = json!({"Values": {"a": "x", "none": "", "map": {"k": "v"}, "n": 3}});
        templates.render("file", &context)
    }

    #[test]
    fn members_are_substituted() {
        assert_eq!(rendered("<{{ .Values.a }}:{{ .Values.n }}>"), "<x:3>");
        assert_eq!(rendered("{{ .Values.a | quote }}"), "\"x\"");
        assert_eq!(rendered("{{ .Values.none | default .Values.a }}"), "x");
    }

    #[test]
    fn branches_depend_on_emptiness() {
        let text = "{{ if .Values.a }}a{{ else }}b{{ end }}{{ if .Values.none }}c{{ end }}";
        assert_eq!(rendered(text), "a");
        assert_eq!(rendered("{{ with .Values.map }}{{ .k }}{{ end }}"), "v");
        assert_eq!(rendered("{{ with .Values.gone }}{{ .k }}{{ end }}"), "");
    }

    #[test]
    fn dashes_trim_whitespace() {
        let text = "a:\n  {{- if .Values.a }}\n  b: c\n  {{- end }}\nd: e";
        assert_eq!(rendered(text), "a:\n  b: c\nd: e");
    }

    #[test]
    fn templates_are_included_and_indented() {
        let text =
            "{{ define \"t\" }}k: {{ .Values.a }}{{ end }}a:{{ include \"t\" . | nindent 2 }}";
        assert_eq!(rendered(text), "a:\n  k: x");
        assert_eq!(
            rendered("a:{{ toYaml .Values.map | nindent 4 }}"),
            "a:\n    k: v"
        );
    }
}
