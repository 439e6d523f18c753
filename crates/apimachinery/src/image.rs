//! Container image references, to the extent that the default pull policy needs.

/// Maximum length of a repository name, domain included.
const NAME_LENGTH_MAX: usize = 255;

/// Maximum length of a tag.
const TAG_LENGTH_MAX: usize = 128;

/// Version part of an image reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageVersion<'a> {
    /// Tag: the text after the colon; `latest` without tag and digest, empty with a digest alone.
    pub tag: &'a str,
    /// Digest: the text after the `@`; empty without one.
    pub digest: &'a str,
}

/// Reason why a text is not an image reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The text is a bare image ID.
    #[error("an image reference must not be 64 hexadecimal characters alone")]
    Identifier,
    /// The repository name is empty, too long, or contains an invalid character.
    #[error("the repository name of the image reference is invalid")]
    Name,
    /// The tag is malformed.
    #[error("the tag of the image reference is invalid")]
    Tag,
    /// The digest is malformed, or its algorithm is unknown.
    #[error("the digest of the image reference is invalid")]
    Digest,
}

/// Returns the pull policy that the API server sets for this image: `Always` for the tag `latest`
/// or no version at all, else `IfNotPresent`, also for an invalid reference.
///
/// Upstream: `SetDefaults_Container`.
pub fn default_pull_policy(image: &str) -> &'static str {
    match parse_image_version(image) {
        Ok(ImageVersion { tag: "latest", .. }) => "Always",
        _ => "IfNotPresent",
    }
}

/// Parses the tag and the digest of an image reference.
///
/// # Errors
/// The reference is invalid.
///
/// Upstream: `parsers.ParseImageName`.
pub fn parse_image_version(image: &str) -> Result<ImageVersion<'_>, ImageError> {
    if image.len() == 64 && image.bytes().all(is_lower_hex) {
        return Err(ImageError::Identifier);
    }
    let (named, digest) = image.split_once('@').unwrap_or((image, ""));
    if image.len() > named.len() && !is_digest(digest) {
        return Err(ImageError::Digest);
    }
    let (domain, path) = split_domain(named);
    let (path, tag) = path.split_once(':').unwrap_or((path, ""));
    if !is_name(domain, path) {
        return Err(ImageError::Name);
    }
    if named.ends_with(':') || (!tag.is_empty() && !is_tag(tag)) {
        return Err(ImageError::Tag);
    }
    let tag = if tag.is_empty() && digest.is_empty() {
        "latest"
    } else {
        tag
    };
    Ok(ImageVersion { tag, digest })
}

/// Splits off the registry domain: the part before the first slash if it contains a dot, a colon or
/// a capital letter, or is `localhost`.
fn split_domain(named: &str) -> (&str, &str) {
    match named.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.to_lowercase() != first =>
        {
            (first, rest)
        }
        _ => ("", named),
    }
}

/// Returns true if domain and path form a valid repository name. An apparent domain may also be an
/// ordinary part of the path.
fn is_name(domain: &str, path: &str) -> bool {
    let (default_domain, library) = ("docker.io/", "library/");
    let length = match domain {
        "" | "docker.io" | "index.docker.io" if path.contains('/') => {
            default_domain.len() + path.len()
        }
        "" | "docker.io" | "index.docker.io" => default_domain.len() + library.len() + path.len(),
        domain => domain.len() + 1 + path.len(),
    };
    length <= NAME_LENGTH_MAX
        && path.split('/').all(is_path_component)
        && (domain.is_empty() || is_domain(domain) || is_path_component(domain))
}

/// Returns true if `text` is a host name, an IPv4 address or a bracketed IPv6 address, with or
/// without a port.
fn is_domain(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_host_part = |part: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty()
            && part.bytes().all(is_inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    let ipv6 = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host_is_valid = match ipv6 {
        Some(address) => {
            let is_inner = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            !address.is_empty() && address.bytes().all(is_inner)
        }
        None => host.split('.').all(is_host_part),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host_is_valid && port.is_none_or(is_port)
}

/// Returns true if `text` consists of lower-case letters and digits, separated by single dots, one
/// or two underscores, or hyphens.
fn is_path_component(text: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let separators = text
        .split(is_plain)
        .filter(|separator| !separator.is_empty());
    let is_separator = |separator: &str| {
        matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    };
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && separators.into_iter().all(is_separator)
}

/// Returns true if `text` is a tag: up to 128 letters, digits, underscores, dots and hyphens, not
/// starting with a dot or a hyphen.
fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= TAG_LENGTH_MAX
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

/// Returns true if `text` is a digest: the name of a known algorithm, a colon, and its number of
/// lower-case hexadecimal digits.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    digits.len() == length && digits.bytes().all(is_lower_hex)
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests;
