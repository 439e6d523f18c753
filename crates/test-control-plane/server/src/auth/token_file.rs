//! Static bearer tokens and their file.

use std::collections::BTreeMap;

use super::identity::Identity;

/// Static bearer tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens(BTreeMap<String, Identity>);

/// An invalid token file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the token file: {reason}")]
#[non_exhaustive]
pub struct TokenFileError {
    /// The line's number, from 1.
    pub line: usize,
    /// The flaw.
    pub reason: TokenFileFlaw,
}

/// A flaw in a line of a token file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileFlaw {
    /// The line has fewer than three columns.
    #[error("must have at least 3 columns (token, user name, user uid), found {0}")]
    Columns(usize),
    /// An unquoted column contains a quote.
    #[error("bare \" in non-quoted field")]
    BareQuote,
    /// A quoted column has no closing quote, or text after it.
    #[error("extraneous or missing \" in quoted-field")]
    OpenQuote,
    /// The first column is empty.
    #[error("the token is empty")]
    NoToken,
    /// An earlier line has the same token.
    #[error("the token is used by an earlier line")]
    Repeated,
}

impl Tokens {
    /// Adds a token. It replaces the user of an existing one.
    pub fn insert(&mut self, token: &str, identity: Identity) {
        self.0.insert(token.to_owned(), identity);
    }

    /// Adds the tokens in a file with kube-apiserver's format: `token,user,uid,"group1,group2"`,
    /// where the groups are optional. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    ///
    /// A line has fewer than three columns, an empty or duplicate token, or stray quotes.
    pub fn insert_file(&mut self, text: &str) -> Result<(), TokenFileError> {
        for record in records(text)? {
            let error = |reason| TokenFileError {
                line: record.line,
                reason,
            };
            let [token, user, uid, rest @ ..] = record.columns.as_slice() else {
                return Err(error(TokenFileFlaw::Columns(record.columns.len())));
            };
            if token.is_empty() {
                return Err(error(TokenFileFlaw::NoToken));
            }
            let groups = rest.first().map_or("", String::as_str).split(',');
            let mut identity = Identity::user(user).uid(uid);
            for group in groups.map(str::trim).filter(|group| !group.is_empty()) {
                identity = identity.group(group);
            }
            if self.0.insert(token.clone(), identity).is_some() {
                return Err(error(TokenFileFlaw::Repeated));
            }
        }
        Ok(())
    }

    /// Returns the user of a token.
    pub fn get(&self, token: &str) -> Option<&Identity> {
        self.0.get(token)
    }
}

struct Record {
    line: usize,
    columns: Vec<String>,
}

/// Splits a text into RFC 4180 records: quoted columns may contain commas, line breaks and doubled
/// quotes.
fn records(text: &str) -> Result<Vec<Record>, TokenFileError> {
    let mut records = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while !rest.is_empty() {
        let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if first.trim().is_empty() || first.starts_with('#') {
            rest = after;
            line += 1;
            continue;
        }
        let (columns, after) = record(rest).map_err(|reason| TokenFileError { line, reason })?;
        records.push(Record { line, columns });
        let read = &rest[..rest.len() - after.len()];
        line += read.matches('\n').count();
        rest = after;
    }
    Ok(records)
}

/// Returns the first record and the remaining text.
fn record(text: &str) -> Result<(Vec<String>, &str), TokenFileFlaw> {
    let mut columns = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start_matches([' ', '\t']);
        let (column, after) = match start.strip_prefix('"') {
            Some(quoted) => quoted_column(quoted)?,
            None => plain_column(start)?,
        };
        columns.push(column);
        if let Some(next) = after.strip_prefix(',') {
            rest = next;
            continue;
        }
        let after = after.strip_prefix('\r').unwrap_or(after);
        return Ok((columns, after.strip_prefix('\n').unwrap_or(after)));
    }
}

fn plain_column(text: &str) -> Result<(String, &str), TokenFileFlaw> {
    let (column, rest) = text.split_at(text.find([',', '\n']).unwrap_or(text.len()));
    if column.contains('"') {
        return Err(TokenFileFlaw::BareQuote);
    }
    Ok((column.trim_end().to_owned(), rest))
}

fn quoted_column(text: &str) -> Result<(String, &str), TokenFileFlaw> {
    let mut column = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or(TokenFileFlaw::OpenQuote)?;
        column.push_str(part);
        rest = after;
        if let Some(after) = rest.strip_prefix('"') {
            column.push('"');
            rest = after;
            continue;
        }
        let rest = rest.trim_start_matches([' ', '\t']);
        let ended = rest.is_empty() || rest.starts_with([',', '\r', '\n']);
        return if ended {
            Ok((column, rest))
        } else {
            Err(TokenFileFlaw::OpenQuote)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Tokens, TokenFileError> {
        let mut tokens = Tokens::default();
        tokens.insert_file(text).map(|()| tokens)
    }

    #[test]
    fn users_uids_and_groups_are_read() {
        let tokens = read(
            "# who is who\n\nsecret,alice,alice-uid,\"devs, ops\"\nt2,bob,2\r\nt3,carol,3,admins\n\
             \"t,4\",\"d \"\"x\"\" e\",,\"\"\n",
        )
        .unwrap();
        let alice = tokens.get("secret").unwrap();
        assert_eq!(
            *alice,
            Identity::user("alice")
                .uid("alice-uid")
                .group("devs")
                .group("ops")
        );
        assert_eq!(*tokens.get("t2").unwrap(), Identity::user("bob").uid("2"));
        assert_eq!(tokens.get("t3").unwrap().groups, ["admins"]);
        assert_eq!(*tokens.get("t,4").unwrap(), Identity::user("d \"x\" e"));
        assert_eq!(tokens.get("secret,alice"), None);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, reason) in [
            ("a,b,1\nc,d\n", 2, TokenFileFlaw::Columns(2)),
            ("\n\n,b,1", 3, TokenFileFlaw::NoToken),
            ("a,b,1\n\na,c,2", 3, TokenFileFlaw::Repeated),
            ("a,b\"c,1", 1, TokenFileFlaw::BareQuote),
            ("a,b,1\nx,\"y,1\nz,w,2", 2, TokenFileFlaw::OpenQuote),
            ("a,\"b\"c,1", 1, TokenFileFlaw::OpenQuote),
            ("\"a\nb\",c,1\nd,e", 3, TokenFileFlaw::Columns(2)),
        ] {
            assert_eq!(
                read(text).unwrap_err(),
                TokenFileError { line, reason },
                "{text:?}"
            );
        }
        let message = read("a,b").unwrap_err().to_string();
        assert_eq!(
            message,
            "line 1 of the token file: must have at least 3 columns (token, user name, user uid), \
             found 2"
        );
    }
}
