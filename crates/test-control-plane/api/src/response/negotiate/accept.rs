//! The `Accept` header: its clauses, best first.

/// One clause: a media type, possibly with wildcards, and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause<'a> {
    pub main: &'a str,
    pub sub: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let media_type = parts.next()?.trim();
        let (main, sub) = match media_type.split_once('/') {
            Some((_, sub)) if sub.contains('/') => return None,
            Some((main, sub)) => (main.trim(), sub.trim()),
            None if media_type == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Self {
            main,
            sub,
            quality: 1.0,
            parameters: Vec::new(),
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => clause.quality = value.trim().parse().unwrap_or(0.0),
                name => clause.parameters.push((name, value.trim())),
            }
        }
        Some(clause)
    }

    /// Returns the quality, from 0 to 1; 1 by default.
    pub(crate) fn quality(&self) -> f32 {
        self.quality
    }

    /// Returns a parameter's value; the last one wins.
    pub(crate) fn parameter(&self, wanted: &str) -> Option<&'a str> {
        let mut values = self.parameters.iter().rev();
        values.find_map(|(name, value)| (*name == wanted).then_some(*value))
    }

    /// Returns true if the clause matches the media type.
    pub(crate) fn takes(&self, main: &str, sub: &str) -> bool {
        match (self.main, self.sub) {
            ("*", "*") => true,
            (own, "*") => own == main,
            (own, own_sub) => own == main && own_sub == sub,
        }
    }

    /// Counts the wildcard parts of the media type.
    fn vagueness(&self) -> u8 {
        u8::from(self.main == "*") * 2 + u8::from(self.sub == "*")
    }
}

/// Returns the clauses of a header in the order to try them: by quality, then by specificity. Skips
/// invalid clauses.
pub(crate) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| {
        let by_quality = b.quality.total_cmp(&a.quality);
        by_quality.then(a.vagueness().cmp(&b.vagueness()))
    });
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        let clauses = clauses(header);
        let texts = clauses.iter().map(|c| format!("{}/{}", c.main, c.sub));
        texts.collect()
    }

    #[test]
    fn clauses_are_sorted_by_quality_then_specificity() {
        assert_eq!(
            order("*/*, a/b;q=0.5, a/*, c/d, *;q=0.9"),
            ["c/d", "a/*", "*/*", "*/*", "a/b"]
        );
    }

    #[test]
    fn clauses_skips_invalid_media_types() {
        assert_eq!(order(", json, a/b/c, x/y"), ["x/y"]);
    }

    #[test]
    fn parameters_are_trimmed() {
        let header = "application/json; as=Table ;v=v1;junk;q=0.3";
        let clauses = clauses(header);
        assert_eq!(clauses[0].parameter("as"), Some("Table"));
        assert_eq!(clauses[0].parameter("v"), Some("v1"));
        assert_eq!(clauses[0].parameter("q"), None);
        assert!((clauses[0].quality - 0.3).abs() < f32::EPSILON);
    }
}
