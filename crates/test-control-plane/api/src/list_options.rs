//! List and watch options from the query.

use serde_json::json;

use crate::query::Query;
use crate::status::{ApiError, ApiResult, FieldError};

/// The query parameter for the use of the version.
const MATCH: &str = "resourceVersionMatch";

/// The options of a list or watch besides selectors.
#[derive(Clone, Debug)]
pub struct ListOptions<'a> {
    /// The requested version; `None` for the newest.
    pub resource_version: Option<&'a str>,
    /// The match rule for the version.
    pub version_match: Option<&'a str>,
    /// The page size; `None` for no limit.
    pub limit: Option<usize>,
    /// The continue token of the previous page.
    pub token: Option<&'a str>,
    /// Seconds until a watch ends; `None` for a random time.
    pub timeout_seconds: Option<i64>,
    /// True if a watch starts with the existing objects; `None` lets the version decide.
    pub send_initial_events: Option<bool>,
}

impl<'a> ListOptions<'a> {
    /// Parses and checks the options of a list.
    ///
    /// # Errors
    ///
    /// 400 for an invalid number, 422 for options that conflict.
    pub fn of_list(query: &'a Query) -> ApiResult<Self> {
        let options = Self::parse(query)?;
        check(&options.list_errors())?;
        Ok(options)
    }

    /// Parses and checks the options of a watch.
    ///
    /// # Errors
    ///
    /// As for [`of_list`](Self::of_list).
    pub fn of_watch(query: &'a Query) -> ApiResult<Self> {
        let options = Self::parse(query)?;
        check(&options.watch_errors())?;
        Ok(options)
    }

    fn parse(query: &'a Query) -> ApiResult<Self> {
        let limit = query.integer("limit")?.filter(|limit| *limit > 0);
        Ok(Self {
            resource_version: query.get("resourceVersion"),
            version_match: query.get(MATCH),
            timeout_seconds: query.integer("timeoutSeconds")?,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            token: query.get("continue"),
            send_initial_events: query.optional_flag("sendInitialEvents"),
        })
    }

    fn list_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid = |detail: &str| errors.push(FieldError::forbidden(MATCH, detail));
        if let Some(found) = self.version_match {
            if self.resource_version.is_none() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if self.token.is_some() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if found != "Exact" && found != "NotOlderThan" {
                let known = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(MATCH, &json!(found), &known));
            } else if found == "Exact" && self.resource_version == Some("0") {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn watch_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid = |detail: &str| errors.push(FieldError::forbidden(MATCH, detail));
        let mut found = self.version_match;
        let mut sends_initial = self.send_initial_events.is_some();
        // A watch without a version sends initial events, as if it had requested them.
        if found.is_none() && !sends_initial && matches!(self.resource_version, None | Some("0")) {
            found = Some("NotOlderThan");
            sends_initial = true;
        }
        if sends_initial && found != Some("NotOlderThan") {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        let Some(found) = found else {
            return errors;
        };
        if !sends_initial {
            forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if found != "NotOlderThan" {
            let known = ["NotOlderThan"];
            errors.push(FieldError::not_supported(MATCH, &json!(found), &known));
        }
        if self.token.is_some() {
            errors.push(FieldError::forbidden(
                MATCH,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        errors
    }
}

fn check(errors: &[FieldError]) -> ApiResult<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_kind(
        "ListOptions",
        "meta.k8s.io",
        "",
        errors,
    ))
}

/// Parses a resource version in a query or a body.
///
/// # Errors
///
/// Go's message for text that isn't a number.
pub fn parse_version(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("strconv.ParseUint: parsing {text:?}: {why}");
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    text.parse().map_err(|_| wrong("value out of range"))
}

/// As [`parse_version`], with the field in front of the error.
///
/// # Errors
///
/// Go's message for text that isn't a number, after the field's name.
pub fn parse_version_field(text: &str) -> Result<u64, String> {
    parse_version(text).map_err(|why| format!("resourceVersion: Invalid value: {text:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: ApiResult<ListOptions<'_>>) -> String {
        result.map_or_else(|err| err.message, |_| String::new())
    }

    #[test]
    fn every_conflict_of_options_is_reported() {
        let prefix = "ListOptions.meta.k8s.io \"\" is invalid: ";
        let unless = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless \
                      resourceVersion is provided";
        let with_token = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when \
                          continue is provided";
        let query = Query::parse("resourceVersionMatch=Exact&continue=x");
        let expected = format!("{prefix}[{unless}, {with_token}]");
        assert_eq!(message(ListOptions::of_list(&query)), expected);
        let query = Query::parse("watch=1&continue=x");
        let expected = format!("{prefix}{with_token}");
        assert_eq!(message(ListOptions::of_watch(&query)), expected);
        let query = Query::parse("resourceVersion=5&continue=x");
        assert_eq!(message(ListOptions::of_watch(&query)), "");
    }

    #[test]
    fn versions_are_digits_only() {
        assert_eq!(parse_version("12"), Ok(12));
        let error = "strconv.ParseUint: parsing \"+1\": invalid syntax";
        assert_eq!(parse_version("+1"), Err(error.to_owned()));
        let huge = "99999999999999999999";
        let error = format!("strconv.ParseUint: parsing \"{huge}\": value out of range");
        assert_eq!(parse_version(huge), Err(error));
    }
}
