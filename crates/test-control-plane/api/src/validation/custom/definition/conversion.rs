//! Validation of the conversion between versions.
//!
//! Upstream: `validateCustomResourceConversion`

use serde_json::{Value, json};

use super::texts::one_of;
use crate::custom::{Definition, fault_of_bundle, texts};
use crate::members::text;
use crate::settings::ServerGates;
use crate::status::FieldError;
use crate::validation::engine::Place;
use crate::validation::{letter_label, tables, webhooks};

const CLIENT: &str = "spec.conversion.webhookClientConfig";
const REVIEWS: &str = "spec.conversion.conversionReviewVersions";
const STRATEGY: &str = "spec.conversion.strategy";

pub(super) fn check(
    spec: &Value,
    preserves: bool,
    old: Option<Definition<'_>>,
    errors: &mut Vec<FieldError>,
) {
    let Some(conversion) = spec.get("conversion").filter(|it| it.is_object()) else {
        return;
    };
    let strategy = text(conversion, "strategy");
    if preserves && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(STRATEGY, &json!(strategy), detail));
    }
    one_of(STRATEGY, strategy, &["None", "Webhook"], errors);
    let webhook = &conversion["webhook"];
    let client = webhook.get("clientConfig").filter(|it| it.is_object());
    let reviews = texts(webhook, "conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(CLIENT, detail));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(REVIEWS, detail));
        }
        return;
    }
    if let Some(client) = client {
        let context = tables::context(ServerGates::default());
        webhooks::client(&Place::root(&context, client, None, CLIENT), errors);
        let bundle = |client| text(client, "caBundle");
        let before = old.map(|old| bundle(&old.0["spec"]["conversion"]["webhook"]["clientConfig"]));
        let needs_valid = old.is_some_and(Definition::is_established)
            && before.is_none_or(|before| fault_of_bundle(before).is_none());
        if let Some(detail) = fault_of_bundle(bundle(client)).filter(|_| needs_valid) {
            let field = format!("{CLIENT}.caBundle");
            errors.push(FieldError::invalid(field, &json!(bundle(client)), detail));
        }
    } else {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(CLIENT, detail));
    }
    review_versions(&reviews, errors);
}

/// Upstream: `validateConversionReviewVersions`
fn review_versions(versions: &[String], errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(REVIEWS, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{REVIEWS}[{index}]");
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(
                field,
                &json!(version),
                "duplicate version",
            ));
            continue;
        }
        for wrong in letter_label(version) {
            errors.push(FieldError::invalid(field.clone(), &json!(version), wrong));
        }
    }
    if !versions.iter().any(|it| it == "v1" || it == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(REVIEWS, &json!(versions), detail));
    }
}
