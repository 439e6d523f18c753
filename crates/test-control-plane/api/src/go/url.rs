//! URLs as Go reads them.
//!
//! Upstream: `URL` of Go's net/url

use std::collections::BTreeMap;

/// A URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    /// The scheme in lower case.
    pub(crate) scheme: String,
    /// The text behind the scheme, if that does not begin with a slash.
    opaque: String,
    user: Option<String>,
    /// The host with its port.
    pub(crate) host: String,
    /// The path with escapes.
    pub(crate) path: String,
    query: String,
    fragment: String,
}

/// The part of a URL that a text is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Path,
    Query,
    Fragment,
}

/// Returns an error unless the text is an absolute URL or an absolute path.
///
/// Upstream: `ParseRequestURI`
pub(crate) fn check_request(text: &str) -> Result<(), String> {
    let found = Url::read(text, true);
    found.map(drop).map_err(|error| in_context(text, &error))
}

fn in_context(text: &str, error: &str) -> String {
    format!("parse {text:?}: {error}")
}

impl Url {
    /// Parses a URL, or a reference to one.
    ///
    /// Upstream: `Parse`
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::read(rest, false).map_err(|error| in_context(rest, &error))?;
        unescape(fragment, Part::Fragment).map_err(|error| in_context(text, &error))?;
        fragment.clone_into(&mut url.fragment);
        Ok(url)
    }

    fn read(text: &str, is_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && is_request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            text.clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if is_request {
                return Err("invalid URI for request".to_owned());
            }
            let first = rest.split('/').next().unwrap_or_default();
            if first.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_authority = !url.scheme.is_empty() || !is_request && !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            Some(authority) => {
                let end = authority.find('/').unwrap_or(authority.len());
                let (authority, path) = authority.split_at(end);
                url.read_authority(authority)?;
                path
            }
            None => rest,
        };
        url.path = escaped_path(path)?;
        Ok(url)
    }

    /// Upstream: `parseAuthority`
    fn read_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = read_host(host)?;
        let is_of_user =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if let Some(user) = user {
            if !user.bytes().all(is_of_user) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, Part::Path)?;
            self.user = Some(user.to_owned());
        }
        Ok(())
    }

    /// Splits the host at the colon before its port.
    fn host_and_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }

    /// Returns the host without its port and without brackets.
    pub(crate) fn hostname(&self) -> &str {
        let (host, _) = self.host_and_port();
        let inner = host.strip_prefix('[');
        inner
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// Returns the port; empty if there is none.
    pub(crate) fn port(&self) -> &str {
        self.host_and_port().1
    }

    /// Returns the user, and its password, in front of the host.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the text behind the hash sign.
    pub(crate) fn fragment(&self) -> &str {
        &self.fragment
    }

    /// Returns the text behind the question mark.
    pub(crate) fn raw_query(&self) -> &str {
        &self.query
    }

    /// Returns the values of the query by name. Skips pairs that cannot be read.
    ///
    /// Upstream: `parseQuery`
    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for member in self.query.split('&') {
            if member.is_empty() || member.contains(';') {
                continue;
            }
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            let name = unescape(name, Part::Query);
            let value = unescape(value, Part::Query);
            if let (Ok(name), Ok(value)) = (name, value) {
                found.entry(name).or_default().push(value);
            }
        }
        found
    }
}

/// Upstream: `getScheme`
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (place, letter) in text.char_indices() {
        match letter {
            ':' if place == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..place], &text[place + 1..])),
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if place > 0 => {}
            _ => break,
        }
    }
    Ok(("", text))
}

/// Upstream: `parseHost`
fn read_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']');
        let end = end.ok_or_else(|| "missing ']' in host".to_owned())?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |place| &host[place..])
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {port:?} after host"));
    }
    unescape(host, Part::Host)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

/// Decodes the escapes of a text. Bytes that are no UTF-8 are replaced.
///
/// Upstream: `unescape`
fn unescape(text: &str, part: Part) -> Result<String, String> {
    let (bytes, mut decoded) = (text.as_bytes(), Vec::with_capacity(text.len()));
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digit = |place: usize| {
                    let digit = bytes.get(at + place).copied().map(char::from);
                    digit.and_then(|digit| digit.to_digit(16))
                };
                let escape = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]);
                let wrong = format!("invalid URL escape {escape:?}");
                let (Some(high), Some(low)) = (digit(1), digit(2)) else {
                    return Err(wrong);
                };
                if part == Part::Host && high < 8 && escape != "%25" {
                    return Err(wrong);
                }
                decoded.push(u8::try_from(16 * high + low).unwrap_or_default());
                at += 2;
            }
            b'+' if part == Part::Query => decoded.push(b' '),
            _ => {
                let is_of_host = is_unreserved(byte) || b"!$&'()*+,;=:[]<>\"".contains(&byte);
                if part == Part::Host && byte < 0x80 && !is_of_host {
                    let letter = char::from(byte).to_string();
                    return Err(format!("invalid character {letter:?} in host name"));
                }
                decoded.push(byte);
            }
        }
        at += 1;
    }
    Ok(String::from_utf8_lossy(&decoded).into_owned())
}

/// Returns a path with its escapes; one that lacks some is escaped.
///
/// Upstream: `EscapedPath`
fn escaped_path(path: &str) -> Result<String, String> {
    let plain = unescape(path, Part::Path)?;
    let is_valid = |byte: u8| is_unreserved(byte) || b"!$&'()*+,;=:@[]%/".contains(&byte);
    if path.bytes().all(is_valid) {
        return Ok(path.to_owned());
    }
    let mut escaped = String::with_capacity(path.len());
    for byte in plain.bytes() {
        if is_unreserved(byte) || b"$&+,/:;=@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let digit = |of: u8| char::from_digit(of.into(), 16).unwrap_or_default();
            let digits = [digit(byte >> 4), digit(byte & 0xf)];
            escaped.push('%');
            escaped.extend(digits.map(|digit| digit.to_ascii_uppercase()));
        }
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_need_an_absolute_url_or_path() {
        for good in [
            "https://a.example/x?y#z",
            "/x",
            "mailto:a@b",
            "*",
            "http://[::1]:80/",
        ] {
            assert_eq!(check_request(good), Ok(()), "{good}");
        }
        for (wrong, error) in [
            ("", "empty url"),
            ("a b", "invalid URI for request"),
            (":x", "missing protocol scheme"),
            ("http://a:x/", "invalid port \":x\" after host"),
            ("http://a b/", "invalid character \" \" in host name"),
            ("http://[::1/", "missing ']' in host"),
            ("http://a/%zz", "invalid URL escape \"%zz\""),
            ("http://u ser@a/", "net/url: invalid userinfo"),
        ] {
            let wanted = format!("parse {wrong:?}: {error}");
            assert_eq!(check_request(wrong), Err(wanted));
        }
    }

    #[test]
    fn url_parts_match_go() {
        let url = Url::parse("HTTPS://u:p@a.example:8443/a b/%2F?x=1&x=%20&y=a+b&z;#f").unwrap();
        assert_eq!(url.scheme, "https");
        assert_eq!(url.host, "a.example:8443");
        assert_eq!((url.hostname(), url.port()), ("a.example", "8443"));
        assert_eq!(url.path, "/a%20b//");
        let query = url.query();
        assert_eq!(query["x"], ["1", " "]);
        assert_eq!(query["y"], ["a b"]);
        assert_eq!(query.len(), 2);
        let url = Url::parse("http://[::1]:80/%2F").unwrap();
        assert_eq!(
            (url.hostname(), url.port(), url.path.as_str()),
            ("::1", "80", "/%2F")
        );
    }
}
