//! The user of a client certificate: common name, organizations as groups, and uid.

use kube_apimachinery::x509;
use ring::digest::{SHA256, digest};

use super::identity::Identity;

/// Returns the user of a verified certificate; `None` without a common name.
///
/// Upstream: `CommonNameUserConversion`.
pub fn user(der: &[u8]) -> Option<Identity> {
    let subject = x509::subject(der)?;
    if subject.common_name.is_empty() {
        return None;
    }
    let identity = Identity {
        groups: subject.organizations,
        ..Identity::user(subject.common_name).uid(subject.uid)
    };
    let bytes = digest(&SHA256, der);
    let hash: Vec<String> = bytes.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    let hash = hash.concat();
    let key = "authentication.kubernetes.io/credential-id";
    Some(identity.extra(key, format!("X509SHA256={hash}")))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in attributes {
            params.distinguished_name.push(kind.clone(), *text);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn name_groups_and_uid_are_read() {
        let der = certificate(&[
            (DnType::OrganizationName, "devs"),
            (DnType::CommonName, "zo\u{eb}"),
            (DnType::CustomDnType(x509::UID_ATTRIBUTE.to_vec()), "1-2"),
            (DnType::CountryName, "DE"),
        ]);
        let user = user(&der).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("zo\u{eb}", "1-2"));
        assert_eq!(user.groups, ["devs"]);
        let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
        assert_eq!(id.len(), "X509SHA256=".len() + 64);
    }

    #[test]
    fn certificate_without_a_name_has_no_user() {
        let nameless = certificate(&[(DnType::OrganizationName, "devs")]);
        assert_eq!(user(&nameless), None);
        assert_eq!(user(&[]), None);
    }
}
