//! Certificate subjects: the part of X.509 that Kubernetes reads from client certificates.

/// Attribute types, DER-encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// 1.3.6.1.4.1.57683.2
const UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// 1.3.6.1.4.1.57683.2, Kubernetes' attribute for user UIDs.
pub const UID_ATTRIBUTE: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const BMP_STRING: u8 = 0x1e;
/// Tag of the version, which the oldest certificates lack.
const VERSION: u8 = 0xa0;

/// Subject of a certificate. Missing attributes are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Common name: the user name.
    pub common_name: String,
    /// Organizations: the user's groups.
    pub organizations: Vec<String>,
    /// UID of the user.
    pub uid: String,
}

/// Parses the subject of a certificate, without verifying it; `None` if the input isn't a
/// certificate.
///
/// Upstream: `x509.Certificate.Subject`.
pub fn subject(der: &[u8]) -> Option<Subject> {
    let mut subject = Subject::default();
    let mut rest = subject_of(der)?;
    while !rest.is_empty() {
        let (set, after) = expect(SET, rest)?;
        rest = after;
        let mut attributes = set;
        while !attributes.is_empty() {
            let (attribute, after) = expect(SEQUENCE, attributes)?;
            attributes = after;
            let (kind, value) = expect(OBJECT_IDENTIFIER, attribute)?;
            let text = text(value)?;
            match kind {
                COMMON_NAME => subject.common_name = text,
                ORGANIZATION => subject.organizations.push(text),
                UID => subject.uid = text,
                _ => {}
            }
        }
    }
    Some(subject)
}

/// Contents of a certificate's subject.
fn subject_of(der: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = expect(SEQUENCE, der)?;
    let (mut rest, _) = expect(SEQUENCE, certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Skip serial number, signature algorithm, issuer and validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    Some(expect(SEQUENCE, rest)?.0)
}

/// Contents of an element with this tag, and the remaining bytes.
fn expect(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = element(der)?;
    (found == tag).then_some((contents, rest))
}

/// First element: tag, contents, and the remaining bytes.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let bytes = usize::from(first & 0x7f);
        let (digits, after) = rest.split_at_checked(bytes)?;
        rest = after;
        length = digits.iter().try_fold(0_usize, |sum, digit| {
            sum.checked_mul(256)?.checked_add(usize::from(*digit))
        })?;
    }
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// Text of a string of any common type.
fn text(der: &[u8]) -> Option<String> {
    let (tag, contents, _) = element(der)?;
    if tag == BMP_STRING {
        let (units, _) = contents.as_chunks();
        let units: Vec<u16> = units.iter().copied().map(u16::from_be_bytes).collect();
        return String::from_utf16(&units).ok();
    }
    String::from_utf8(contents.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: u8, contents: &[u8]) -> Vec<u8> {
        let mut der = vec![tag];
        match u8::try_from(contents.len()) {
            Ok(short) if short < 0x80 => der.push(short),
            _ => {
                let length = u16::try_from(contents.len()).unwrap();
                der.push(0x82);
                der.extend(length.to_be_bytes());
            }
        }
        der.extend(contents);
        der
    }

    fn attribute(kind: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let pair = [tagged(OBJECT_IDENTIFIER, kind), tagged(tag, text)].concat();
        tagged(SET, &tagged(SEQUENCE, &pair))
    }

    /// A certificate, up to its subject.
    fn certificate(subject: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            tagged(VERSION, &tagged(2, &[2])),
            tagged(2, &[1]),
            tagged(SEQUENCE, &[0; 300]),
            tagged(SEQUENCE, &[]),
            tagged(SEQUENCE, &[]),
            tagged(SEQUENCE, &subject.concat()),
            tagged(SEQUENCE, &[]),
        ];
        tagged(SEQUENCE, &tagged(SEQUENCE, &body.concat()))
    }

    #[test]
    fn subject_has_name_organizations_and_uid() {
        let der = certificate(&[
            attribute(ORGANIZATION, 0x13, b"devs"),
            attribute(COMMON_NAME, 0x0c, "zo\u{eb}".as_bytes()),
            attribute(ORGANIZATION, BMP_STRING, b"\0o\0p\0s"),
            attribute(UID, 0x0c, b"1-2"),
            attribute(&[0x55, 0x04, 0x06], 0x13, b"DE"),
        ]);
        let expected = Subject {
            common_name: "zo\u{eb}".to_owned(),
            organizations: vec!["devs".to_owned(), "ops".to_owned()],
            uid: "1-2".to_owned(),
        };
        assert_eq!(subject(&der), Some(expected));
    }

    #[test]
    fn invalid_certificate_has_no_subject() {
        let mut cut = certificate(&[attribute(COMMON_NAME, 0x13, b"me")]);
        cut.pop();
        for der in [&cut[..], &[], &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(subject(der), None);
        }
    }
}
