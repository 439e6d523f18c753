//! Tests of checksums, provenance and manifest, verified as the page about releases says.

use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use release::digest::Digest;
use release::seal::{CHECKSUMS, MANIFEST, PROVENANCE};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use crate::fixture::{Packed, root};

#[test]
fn provenance_and_checksums_name_every_artefact() {
    let packed = Packed::new();
    let mut all = packed.all();
    all.remove(MANIFEST).unwrap();
    all.remove(CHECKSUMS).unwrap();
    let line = |(name, bytes): (&String, &Vec<u8>)| format!("{}  {name}", Digest::of(bytes));
    let mut expected: Vec<String> = all.iter().map(line).collect();
    let text = packed.text(CHECKSUMS);
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);

    all.remove(PROVENANCE).unwrap();
    let statement = packed.json(PROVENANCE);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = statement["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), all.len());
    for subject in subjects {
        let bytes = &all[subject["name"].as_str().unwrap()];
        assert_eq!(subject["digest"]["sha256"], Digest::of(bytes).to_string());
    }
    // The fields that SLSA requires.
    let definition = &statement["predicate"]["buildDefinition"];
    let is_uri = |text: &str| text.starts_with("https://");
    assert!(definition["buildType"].as_str().is_some_and(is_uri));
    assert!(definition["externalParameters"].is_object());
    let builder = &statement["predicate"]["runDetails"]["builder"]["id"];
    assert!(builder.as_str().is_some_and(is_uri));
    let commit = &definition["resolvedDependencies"][0]["digest"]["gitCommit"];
    assert_eq!(commit, "0123456789abcdef0123456789abcdef01234567");
}

#[test]
fn manifest_lists_sizes_and_what_is_missing() {
    let packed = Packed::new();
    let text = packed.text(MANIFEST);
    for (name, bytes) in packed.all() {
        if name != MANIFEST {
            let line = format!("{:>9} {} {name}\n", bytes.len(), Digest::of(&bytes));
            assert!(text.contains(&line), "{line}{text}");
        }
    }
    let missing = "not built: kubectl-sts for x86_64-apple-darwin: needs macOS\n";
    assert!(text.ends_with(missing), "{text}");
}

/// Signs the checksums as `cosign sign-blob --key` does, and writes the public key to a file.
fn sign(folder: &Path, key: &Path) {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random).unwrap();
    let checksums = std::fs::read(folder.join(CHECKSUMS)).unwrap();
    let signature = pair.sign(&random, &checksums).unwrap();
    std::fs::write(folder.join("SHA256SUMS.sig"), STANDARD.encode(signature)).unwrap();
    // RFC 5480: the header of a public key on P-256, before the point.
    let header = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
    let digit = |at: usize| u8::from_str_radix(&header[at..at + 2], 16).unwrap();
    let mut public: Vec<u8> = (0..header.len()).step_by(2).map(digit).collect();
    public.extend(pair.public_key().as_ref());
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(public)
    );
    std::fs::write(key, pem).unwrap();
}

fn verify(folder: &Path, key: &Path) -> Output {
    let script = root().join("hack/release/verify.sh");
    Command::new(script).arg(folder).arg(key).output().unwrap()
}

#[test]
fn downloads_are_verified_with_the_key_that_signed_them() {
    let packed = Packed::new();
    let keys = tempfile::tempdir().unwrap();
    let (key, other) = (keys.path().join("key"), keys.path().join("other"));
    sign(&packed.folder(), &other);
    sign(&packed.folder(), &key);
    let output = verify(&packed.folder(), &key);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = packed.text(CHECKSUMS).lines().count();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        text,
        format!("{count} files verified with {}\n", key.display())
    );

    let output = verify(&packed.folder(), &other);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("not one of this key"), "{errors}");
}

#[test]
fn changed_downloads_and_checksums_are_refused() {
    let packed = Packed::new();
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key");
    sign(&packed.folder(), &key);
    let refused = |why: &str| {
        let output = verify(&packed.folder(), &key);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(errors.contains(why), "{errors}");
    };
    let formula = packed.folder().join("kubectl-sts.rb");
    let original = std::fs::read(&formula).unwrap();
    std::fs::write(&formula, "class Other\n").unwrap();
    refused("differ from SHA256SUMS");
    std::fs::write(&formula, original).unwrap();
    let checksums = packed.text(CHECKSUMS).replace("kubectl-sts.rb", "other.rb");
    std::fs::write(packed.folder().join(CHECKSUMS), checksums).unwrap();
    refused("not one of this key");
}
