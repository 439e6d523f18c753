//! Rules of the actions of probes and lifecycle hooks.

use crate::validation::place::{Errors, Place};
use crate::validation::rules;

/// The actions, with their types.
const HANDLERS: [(&str, &str); 5] = [
    ("exec", "ExecAction"),
    ("httpGet", "HTTPGetAction"),
    ("tcpSocket", "TCPSocketAction"),
    ("grpc", "GRPCAction"),
    ("sleep", "SleepAction"),
];

/// Upstream: `validateHandler`.
pub(in crate::validation) fn handler(found: &Place<'_>, errors: &mut Errors) {
    let given = HANDLERS.map(|(member, block)| (found.member(member), block));
    let mut given = given.iter().filter(|(action, _)| action.is_present());
    match given.next() {
        Some((action, block)) => rules::check(block, action, errors),
        None => errors.push(found.required("must specify a handler type")),
    }
    for (action, _) in given {
        errors.push(action.forbidden("may not specify more than 1 handler type"));
    }
}
