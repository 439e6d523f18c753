//! The policy, case by case.
