//! Rules of security contexts.

use serde_json::json;

use super::spec::visit_containers;
use crate::go::names;
use crate::validation::engine::{Errors, Place};

/// Maximum lengths of the parts of a user's name, in bytes.
const DOMAIN_MAX: usize = 256;
const NETBIOS_MAX: usize = 15;
const USER_MAX: usize = 104;

/// The characters that a user's name can't have.
const NOT_OF_USERS: &str = "\"/\\:;|=,+*?<>@[]";

/// The characters that a `NetBIOS` name can't have.
const NOT_OF_DOMAINS: &str = "\\/:*?\"<>|";

/// The kernel parameters of a namespace of inter-process communication.
const IPC_PARAMETERS: [&str; 10] = [
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
];

pub(in crate::validation) fn admin_capability(context: &Place<'_>, errors: &mut Errors) {
    let added = context.member("capabilities.add");
    for _ in added.values().filter(|name| name.text() == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                      CAP_SYS_ADMIN";
        errors.push(context.invalid(detail));
    }
}

/// Upstream: `ValidateHostSysctl`.
pub(in crate::validation) fn host_sysctl(name: &Place<'_>, errors: &mut Errors) {
    let is_host = |member: &str| name.pod_spec().get(member) == Some(&json!(true));
    let parameter = match name.text().find(['.', '/']).map(|i| &name.text()[i..=i]) {
        Some("/") => swapped(name.text()),
        _ => name.text().to_owned(),
    };
    let parameter = parameter.split('*').next().unwrap_or_default();
    let is_of_ipc = IPC_PARAMETERS.contains(&parameter) || parameter.starts_with("fs.mqueue.");
    if parameter.starts_with("net.") && is_host("hostNetwork") {
        name.invalid_for(["may not be specified when 'hostNetwork' is true"], errors);
    } else if is_of_ipc && is_host("hostIPC") {
        name.invalid_for(["may not be specified when 'hostIPC' is true"], errors);
    }
}

/// Swaps dots and slashes.
fn swapped(name: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    name.chars().map(swap).collect()
}

/// Upstream: `validateWindowsSecurityContextOptions`.
pub(in crate::validation) fn windows_user(name: &Place<'_>, errors: &mut Errors) {
    let text = name.text();
    let whole = if text.is_empty() {
        "cannot be an empty string"
    } else if text.chars().any(|c| c.is_ascii_control()) {
        "cannot contain control characters"
    } else if text.matches('\\').count() > 1 {
        "cannot contain more than one backslash"
    } else {
        ""
    };
    if !whole.is_empty() {
        name.invalid_for([format!("runAsUserName {whole}")], errors);
        return;
    }
    let (domain, user) = match text.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, text),
    };
    let mut wrong = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX) {
        wrong.push(format!(
            "Domain length must be under {DOMAIN_MAX} characters"
        ));
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns(domain)) {
        wrong.push("Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        wrong.push("User cannot be empty".to_owned());
    } else if user.len() > USER_MAX {
        wrong.push(format!(
            "User length must not be longer than {USER_MAX} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        wrong.push("User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| NOT_OF_USERS.contains(c)) {
        wrong.push("User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".to_owned());
    }
    let wrong = wrong.iter();
    name.invalid_for(wrong.map(|why| format!("runAsUserName's {why}")), errors);
}

fn is_netbios(domain: &str) -> bool {
    let is_short = (1..=NETBIOS_MAX).contains(&domain.chars().count());
    is_short && !domain.starts_with('.') && !domain.contains(|c| NOT_OF_DOMAINS.contains(c))
}

fn is_dns(domain: &str) -> bool {
    let mut labels = domain.split('.');
    labels.all(|label| names::dns_label(&label.to_ascii_lowercase()).is_empty())
}

/// Upstream: `validateWindowsHostProcessPod`.
pub(in crate::validation) fn host_process(spec: &Place<'_>, errors: &mut Errors) {
    const MEMBER: &str = "securityContext.windowsOptions.hostProcess";
    let of_pod = spec.member(MEMBER).value.as_bool();
    let (mut all, mut found) = (0, 0);
    visit_containers(spec, &mut |container| {
        all += 1;
        let place = container.member(MEMBER);
        let own = place.value.as_bool();
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(place.invalid(&detail));
        }
        if own.or(of_pod) == Some(true) {
            found += 1;
        }
    });
    if found == 0 {
        return;
    }
    if found != all {
        let detail = "If pod contains any hostProcess containers then all containers must be \
                      HostProcess containers";
        errors.push(spec.invalid_as(&json!(""), detail));
    }
    let network = spec.member("hostNetwork");
    if network.value != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_as(&json!(false), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_one_of_two_forms() {
        for domain in ["CONTOSO", "a b", "example.com", "A.b"] {
            assert!(is_netbios(domain) || is_dns(domain), "{domain}");
        }
        for domain in ["", ".a", "a*b", "a-very-long-domain-"] {
            assert!(!is_netbios(domain) && !is_dns(domain), "{domain}");
        }
    }

    #[test]
    fn slashes_may_separate_parameters() {
        assert_eq!(swapped("net/ipv4/conf/eno2.100"), "net.ipv4.conf.eno2/100");
    }
}
