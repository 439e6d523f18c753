//! Objects that pods need besides claims: secrets, config maps and service accounts.
//!
//! They aren't copied, because users rarely may read secrets. The copy has stand-ins with the keys
//! that the pods use.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Objects by kind and name, with their keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs(BTreeMap<(Kind, String), BTreeSet<String>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
}

impl Needs {
    /// Adds the needs of a pod's spec.
    pub(super) fn add(&mut self, spec: &Value) {
        if let Some(account) = spec.get("serviceAccountName").and_then(Value::as_str) {
            self.need(Kind::ServiceAccount, account);
        }
        self.walk(spec);
    }

    /// Visits every reference in a value. Their names are unique in a pod's spec.
    fn walk(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    self.refer(member, value);
                    self.walk(value);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.walk(element)),
            _ => {}
        }
    }

    fn refer(&mut self, member: &str, value: &Value) {
        let kind = match member {
            "secret" | "secretRef" | "secretKeyRef" => Kind::Secret,
            "configMap" | "configMapRef" | "configMapKeyRef" => Kind::ConfigMap,
            _ => return,
        };
        // A volume names its secret otherwise.
        let name = value.get("secretName").or_else(|| value.get("name"));
        let Some(name) = name.and_then(Value::as_str) else {
            return;
        };
        let keys = self.need(kind, name);
        let items = value.get("items").and_then(Value::as_array);
        let items = items.into_iter().flatten();
        let used = items
            .chain([value])
            .filter_map(|it| it.get("key")?.as_str());
        keys.extend(used.map(str::to_owned));
    }

    fn need(&mut self, kind: Kind, name: &str) -> &mut BTreeSet<String> {
        self.0.entry((kind, name.to_owned())).or_default()
    }

    /// The stand-ins, with their kinds.
    pub(super) fn stand_ins(&self, namespace: &str) -> Vec<(&'static str, Value)> {
        let objects = self.0.iter().map(|((kind, name), keys)| {
            let (kind, has_data) = match kind {
                Kind::ConfigMap => ("ConfigMap", true),
                Kind::Secret => ("Secret", true),
                Kind::ServiceAccount => ("ServiceAccount", false),
            };
            let uid = format!("{kind}-{name}");
            let metadata = json!({"name": name, "namespace": namespace, "uid": uid});
            let data = keys.iter().map(|key| (key.clone(), json!("")));
            let data: Option<Map<String, Value>> = has_data.then(|| data.collect());
            (kind, json!({"metadata": metadata, "data": data}))
        });
        objects.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_a_spec_are_found() {
        let spec = json!({
            "serviceAccountName": "runner",
            "containers": [{
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "b"}}},
                ],
                "envFrom": [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "conf"}}],
            }],
            "volumes": [
                {"name": "a", "secret": {"secretName": "tls", "items": [{"key": "crt", "path": "c"}]}},
                {"name": "b", "configMap": {"name": "conf"}},
                {"name": "c", "projected": {"sources": [
                    {"secret": {"name": "login", "items": [{"key": "pass", "path": "p"}]}}]}},
            ],
        });
        let mut needs = Needs::default();
        needs.add(&spec);
        let found = needs.stand_ins("db");
        let found: Vec<String> = found
            .iter()
            .map(|(kind, object)| {
                let keys = object["data"].as_object().into_iter().flatten();
                let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).collect();
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                format!("{kind} {name} {}", keys.join(","))
            })
            .collect();
        let wanted = [
            "ConfigMap conf b",
            "Secret all ",
            "Secret login pass,user",
            "Secret tls crt",
            "ServiceAccount runner ",
        ];
        assert_eq!(found, wanted);
    }
}
