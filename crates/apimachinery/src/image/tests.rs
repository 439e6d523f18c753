//! Tests of image references and pull policies.

use super::*;

#[test]
fn latest_or_no_version_is_pulled_always() {
    let digest = format!("sha256:{}", "a".repeat(64));
    for image in [
        "web",
        "web:latest",
        "host:5000/web",
        "localhost/web",
        "a/b/c",
        "[::1]:5000/x",
    ] {
        assert_eq!(default_pull_policy(image), "Always", "{image}");
    }
    assert_eq!(default_pull_policy(&format!("x:latest@{digest}")), "Always");
    assert_eq!(default_pull_policy("foo_bar.com/x"), "Always");
    assert_eq!(default_pull_policy("Registry/x"), "Always");
}

#[test]
fn other_versions_are_pulled_if_not_present() {
    let digest = format!("sha256:{}", "a".repeat(64));
    for image in [
        "web:1",
        "web:Latest",
        "host:5000/web:1",
        "host:5000/a/web:v1.2-rc_3",
    ] {
        assert_eq!(default_pull_policy(image), "IfNotPresent", "{image}");
    }
    assert_eq!(
        default_pull_policy(&format!("web@{digest}")),
        "IfNotPresent"
    );
    assert_eq!(
        default_pull_policy(&format!("web:1@{digest}")),
        "IfNotPresent"
    );
    let expected = ImageVersion {
        tag: "",
        digest: digest.as_str(),
    };
    assert_eq!(
        parse_image_version(&format!("a/web@{digest}")),
        Ok(expected)
    );
}

#[test]
fn invalid_references_are_pulled_if_not_present() {
    let hex = "a".repeat(64);
    let long_tag = format!("web:{}", "a".repeat(129));
    let long_name = "a".repeat(238);
    let bad_digest = format!("web@sha256:{}", "A".repeat(64));
    for (image, error) in [
        ("", ImageError::Name),
        (hex.as_str(), ImageError::Identifier),
        ("Web", ImageError::Name),
        ("a//b", ImageError::Name),
        ("a/", ImageError::Name),
        ("-a", ImageError::Name),
        ("a..b", ImageError::Name),
        ("a___b", ImageError::Name),
        ("web :1", ImageError::Name),
        ("host.:5000/x", ImageError::Name),
        ("a.b:x/y", ImageError::Name),
        (long_name.as_str(), ImageError::Name),
        ("web:", ImageError::Tag),
        ("web:-a", ImageError::Tag),
        ("web:a:b", ImageError::Tag),
        (long_tag.as_str(), ImageError::Tag),
        ("web@", ImageError::Digest),
        ("web@sha256:abc", ImageError::Digest),
        ("web@md5:abc", ImageError::Digest),
        (bad_digest.as_str(), ImageError::Digest),
    ] {
        assert_eq!(parse_image_version(image), Err(error), "{image}");
        assert_eq!(default_pull_policy(image), "IfNotPresent", "{image}");
    }
    assert!(parse_image_version(&"a".repeat(237)).is_ok());
    for image in ["a__b", "a--b", "a.b_c-d", "a-b/c.d"] {
        assert!(parse_image_version(image).is_ok(), "{image}");
    }
}
