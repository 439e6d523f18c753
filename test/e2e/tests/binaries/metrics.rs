//! What the shipped program shows at `/metrics`, beside a recorded scrape of the reference.

use conformance::metrics;

#[test]
fn metrics_have_the_form_of_the_references() {
    let recorded = conformance::programs::root().join("test/vectors/metrics.txt");
    let scrape = metrics::scrape(None).unwrap();
    let report = metrics::run(&[recorded], &scrape).unwrap();
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    // Each family, and their order.
    assert_eq!(report.passed, 20 + 1);
}
