//! Comparison of the shipped program's `/metrics` with a recorded scrape of upstream.

use conformance::metrics;

#[test]
fn metrics_match_the_form_of_the_reference() {
    let recorded = conformance::programs::root().join("test/vectors/metrics.txt");
    let scrape = metrics::scrape(None).unwrap();
    let report = metrics::run(&[recorded], &scrape).unwrap();
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
    // One case per family, and one for their order.
    assert_eq!(report.passed, 20 + 1);
}
