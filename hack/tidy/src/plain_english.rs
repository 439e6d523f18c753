//! Wording rules for comments, documentation, messages and test names.
//!
//! The usual fault is a relative clause instead of a noun, with an unnamed actor. Text between
//! backticks or double quotes is exempt: it quotes code, the wire or the reference.

mod passage;
mod passages;

use std::collections::BTreeMap;

use crate::{Findings, repository::SourceFile};
use passage::{Kind, Word};
use passages::passages;

/// Forbidden phrases with the advice. `|` separates alternatives for one word, `.` is the end of a
/// clause, `*` is up to five words.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "write `again`"),
    ("whoever|whomever|whosever", "name the actor"),
    ("somebody|somebody's|nobody|nobody's", "name the actor"),
    ("whatever|whichever", "name the thing, or write `any`"),
    ("tells|told", "write log, report, return or show"),
    ("so many|much", "give the number or name the limit"),
    ("as many|much * as", "give the number or name the limit"),
    (
        "of its|their|our|your|one's own .|and|or|that|which|who|whose|to|in|with|for|from|is|are|has\
         |have|by|on|as|at|than|but|beside|behind|under|before|after|where|when|while|below|until",
        "write `separate`, or drop it",
    ),
    (
        "is|are|was|were|isn't|aren't|be|not there .|and|or|but|already|when|while|until|for",
        "write `exists`",
    ),
    ("what|that is|are|was|were there", "write `exists`"),
    ("by feel", "give the reason"),
    ("goes|go|going|went by", "write `uses` or `follows`"),
    ("no|a word of|about", "write `not logged`"),
    ("without|not a word", "write `silently`"),
    ("in its|their place", "write `instead`"),
    ("in the place of", "write `instead of`"),
    ("for ever", "write `forever` or `indefinitely`"),
    ("of|to|for|by|from|with|than who", "name the actor"),
    (
        "of|to|for|by|from|with|in|on|than|as|and|or what",
        "use a noun",
    ),
    (
        "what is|are|was|were|has|have|had|it|they|he|we|can|can't|must|may|should",
        "use a noun",
    ),
    (
        "that|which|what is|are|was|were to",
        "name the obligation: must, needs, will",
    ),
    ("makes|make|made for", "use a verb"),
    (
        "stands|stood after|at|on|once|under|there|behind|beside|before|between|above|below|here|where|.",
        "write `is`",
    ),
    (
        "stands|stood in a|an|its|no|one|that|the|their|this",
        "write `is`",
    ),
    ("looks|looking|looked at", "write `checks` or `reads`"),
    ("live|last look", "write `read`"),
    ("mend|mends|mended|mending", "write `fix` or `repair`"),
    ("to be had", "write `available`"),
    ("said|says otherwise", "name the default"),
    ("comes|come along|about", "use a verb"),
    (
        "hear|hears|heard of",
        "write `sees`, `learns` or `receives`",
    ),
    ("any more", "write `no longer`"),
    ("gets ready", "write `becomes ready`"),
    ("is|are|was|were waited for", "name the actor that waits"),
    (
        "goes with a|an|the|their",
        "name the action: deleted with, removed with",
    ),
    (
        "don't|doesn't|not go .",
        "name the action: stop, end, disappear",
    ),
    ("at hand", "write `available`"),
    ("way out", "name the remedy"),
    (
        "say|says|said why|what|how|whether",
        "write `explains`, `reports` or `names`",
    ),
    (
        "so that * can|may go",
        "name the action: delete, drop, free",
    ),
    ("of which|whom * say|says|said that", "split the sentence"),
    ("beside", "write `besides`, `alongside` or `next to`"),
    (
        "as upstream|client-go|kubectl|kube-apiserver|kube-controller-manager ,",
        "write `like upstream`, or `as upstream does`",
    ),
    (
        ", as upstream .",
        "write `like upstream`, or `as upstream does`",
    ),
    ("stock role|roles|rights", "write `default role`"),
    ("to the byte", "write `byte for byte`"),
    ("wanted state", "write `desired state`"),
    (
        "present status|pods|pod|objects|answers",
        "write `current` or `existing`",
    ),
    (
        "user's|missing|all|no|the|with|needs rights",
        "write `permissions`",
    ),
    (
        "a|the|missing|every|no right to|is|of",
        "write `permission`",
    ),
    (
        "dooms|doomed|doom|dooming .|a|the|no|claim|claims|its|it",
        "name the deletion by the garbage collector",
    ),
    ("gets lost", "write `is lost`"),
];

/// Maximum length of a test's name.
const TEST_NAME_MAX: usize = 59;

/// First words of a clause where a noun phrase or a verb belongs.
const CLAUSE_STARTS: &[&str] = &[
    "how", "what", "whatever", "when", "where", "whether", "which", "who", "whoever", "whom",
    "whose", "why",
];

/// First words of a sentence that has a clause as its subject.
const CLAUSE_SUBJECTS: &[&str] = &["what", "whatever", "who", "whoever", "which"];

/// Checks every file; `files` holds all text files of the repository.
pub fn check(files: &[SourceFile]) -> Findings {
    let rules = Rules::new();
    files.iter().flat_map(|file| rules.check(file)).collect()
}

/// The phrases by their first word.
struct Rules(BTreeMap<&'static str, Vec<Phrase>>);

/// Alternatives for each word after the first, and the advice.
struct Phrase {
    rest: Vec<Vec<&'static str>>,
    advice: &'static str,
}

impl Rules {
    fn new() -> Self {
        let mut rules: BTreeMap<&str, Vec<Phrase>> = BTreeMap::new();
        for (phrase, advice) in PHRASES {
            let mut parts = phrase.split_whitespace();
            let first = parts.next().unwrap_or_default();
            let rest: Vec<Vec<&str>> = parts.map(|part| part.split('|').collect()).collect();
            for word in first.split('|') {
                let rest = rest.clone();
                rules.entry(word).or_default().push(Phrase { rest, advice });
            }
        }
        Self(rules)
    }

    fn check(&self, file: &SourceFile) -> Findings {
        let mut findings = Findings::new();
        for passage in passages(file) {
            if passage.kind == Kind::TestName && passage.len() > TEST_NAME_MAX {
                let (line, length) = (passage.line_of(0), passage.len());
                findings.push(format!(
                    "{}:{line}: the test's name has {length} characters; {TEST_NAME_MAX} is the most",
                    file.path
                ));
            }
            let words = passage.words();
            let mut start = 0;
            while let Some(word) = words.get(start) {
                let Some((length, advice)) = self.fault(passage.kind, &words, start) else {
                    start += 1;
                    continue;
                };
                let found = &words[start..start + length];
                let found: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
                let (line, found) = (passage.line_of(word.at), found.join(" "));
                findings.push(format!("{}:{line}: \"{found}\": {advice}", file.path));
                start += length;
            }
        }
        findings
    }

    /// The number of words of a fault that begins at a word, and the advice for it.
    fn fault(&self, kind: Kind, words: &[Word], start: usize) -> Option<(usize, &'static str)> {
        if begins_with_clause(kind, words, start) {
            return Some((1, "begin with a noun or a verb"));
        }
        let mut phrases = self.0.get(words[start].text.as_str())?.iter();
        phrases.find_map(|phrase| {
            let length = phrase.length(&words[start + 1..])?;
            Some((length + 1, phrase.advice))
        })
    }
}

impl Phrase {
    /// The number of words that the rest of the phrase covers at the start of `words`.
    fn length(&self, words: &[Word]) -> Option<usize> {
        let mut length = 0;
        let mut gap = 0;
        for options in &self.rest {
            if options == &["*"] {
                gap = 5;
                continue;
            }
            let mut places = length..=length + gap;
            let place = places.find(|place| {
                let word = words.get(*place);
                options.iter().any(|option| match word {
                    Some(word) if *option == "." => word.is_mark(),
                    Some(word) => word.text == *option,
                    None => *option == ".",
                })
            })?;
            if words.get(length..place)?.iter().any(Word::is_mark) {
                return None;
            }
            length = place + 1;
            gap = 0;
        }
        Some(length.min(words.len()))
    }
}

/// Reports a clause at the start of a header, or as the subject of a sentence that is no question.
fn begins_with_clause(kind: Kind, words: &[Word], at: usize) -> bool {
    let word = words[at].text.as_str();
    if !CLAUSE_STARTS.contains(&word) {
        return false;
    }
    let first = words[..at].iter().all(Word::is_mark);
    if first && kind != Kind::Plain {
        return true;
    }
    let starts = first || words[at - 1].ends_sentence();
    let mut ends = words[at..].iter().map(|word| word.text.as_str());
    let end = ends.find(|text| [".", "!", "?", "|"].contains(text));
    starts && CLAUSE_SUBJECTS.contains(&word) && end != Some("?")
}

#[cfg(test)]
mod tests;
