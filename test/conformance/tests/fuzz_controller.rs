//! Test of the first rounds of the controller's fuzzer.

use conformance::odd::fuzz::{Panics, Round};

#[test]
fn fuzz_rounds_affect_no_ordinary_set() {
    let panics = Panics::watch();
    let caught = std::panic::catch_unwind(|| panic!("on purpose"));
    assert!(caught.is_err());
    assert_eq!(panics.count(), 1, "a caught panic counts");
    for seed in 0..20 {
        let outcome = Round::new(seed).run(&panics);
        assert!(outcome.is_ok(), "seed {seed}: {:#}", outcome.unwrap_err());
    }
}
