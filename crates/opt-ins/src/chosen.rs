//! The choices of a set.

use statefulset_controller_util::stateful_set::StatefulSet;

use crate::carrier::{Carrier, MARKS, PREFIX};
use crate::defect::Defect;
use crate::opt_ins::OptIns;
use crate::rollout::is_rolling;
use crate::sync_rules::SyncRules;

#[cfg(test)]
mod tests;

/// Returns the choices of a set: those of its annotations, else the defaults. Without a
/// carrier's feature gate its choice is none.
///
/// An annotation that can't be used makes no choice, and where that would be unsafe the set does
/// less until it is corrected.
pub fn chosen(set: &StatefulSet, rules: &SyncRules) -> OptIns {
    let SyncRules {
        gates,
        opt_in_defaults,
    } = rules;
    let gates = *gates;
    let mut opt_ins = OptIns::default();
    if !gates.allows_opt_ins() {
        return opt_ins;
    }
    let annotations = &set.metadata.annotations;
    for carrier in Carrier::ALL {
        if !carrier.is_enabled(gates) {
            continue;
        }
        let given = annotations.get(carrier.annotation()).map(String::as_str);
        let Some(value) = given.or_else(|| opt_in_defaults.get(carrier)) else {
            continue;
        };
        if let Err(problem) = opt_ins.read(carrier, value) {
            opt_ins.hold(carrier);
            let value = value.to_owned();
            opt_ins.defects.push(Defect::Value {
                carrier,
                value,
                problem,
            });
        } else if given.is_some() && !is_rolling(set) && opt_ins.limits(carrier) {
            opt_ins.defects.push(Defect::NoRollout(carrier));
        } else if carrier == Carrier::ClaimSize
            && let Some(template) = unknown_template(set, &opt_ins)
        {
            opt_ins.hold(carrier);
            opt_ins.defects.push(Defect::NoTemplate(template));
        }
    }
    let with_prefix = annotations.range(PREFIX.to_owned()..);
    let with_prefix = with_prefix.map_while(|(key, _)| key.strip_prefix(PREFIX));
    let unknown = with_prefix.filter(|name| {
        let mut known = Carrier::ALL.into_iter();
        !known.any(|carrier| carrier.name() == *name) && !MARKS.contains(name)
    });
    let unknown = unknown.map(|name| Defect::Unknown(name.to_owned()));
    opt_ins.defects.extend(unknown);
    opt_ins
}

/// Returns the first name with a size that is no claim template of the set.
fn unknown_template(set: &StatefulSet, opt_ins: &OptIns) -> Option<String> {
    let templates = &set.spec.claim_templates;
    let mut named = opt_ins.claim_sizes.iter().map(|(name, _)| name);
    let unknown = named.find(|name| !templates.iter().any(|it| *it.name == **name));
    unknown.map(str::to_owned)
}
