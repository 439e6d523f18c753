//! User agents: how the API server's records name a process and its requests.

use std::fmt;
use std::str::FromStr;

/// Prefix of the instances' user agents.
const PREFIX: &str = "controller";

/// User agent of the users.
pub const USER: &str = "user";

/// User agent of writers that compete with the controllers.
pub const RIVAL: &str = "rival";

/// User agent of changes that an upgraded API server makes by itself.
pub const UPGRADE: &str = "upgrade";

/// One life of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The instance, counted from 0.
    pub instance: usize,
    /// The number of its earlier lives.
    pub life: u32,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.instance, self.life)
    }
}

/// Returns the prefix of the user agents of an instance.
pub fn of_instance(instance: usize) -> String {
    format!("{PREFIX}-{instance}/")
}

/// The user agent of one request of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The sender.
    pub process: Process,
    /// The request, counted over all instances.
    pub request: usize,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { instance, life } = self.process;
        write!(f, "{}{life}/{}", of_instance(instance), self.request)
    }
}

/// The text is not the user agent of an instance.
#[derive(Debug)]
pub struct NotAnInstance;

impl FromStr for Agent {
    type Err = NotAnInstance;

    fn from_str(text: &str) -> Result<Self, NotAnInstance> {
        let parse = || {
            let rest = text.strip_prefix(PREFIX)?.strip_prefix('-')?;
            let mut parts = rest.split('/');
            let process = Process {
                instance: parts.next()?.parse().ok()?,
                life: parts.next()?.parse().ok()?,
            };
            let request = parts.next()?.parse().ok()?;
            Some(Self { process, request })
        };
        parse().ok_or(NotAnInstance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_round_trips() {
        let process = Process {
            instance: 2,
            life: 7,
        };
        let agent = Agent {
            process,
            request: 31,
        };
        let parsed: Agent = agent.to_string().parse().expect("an agent");
        assert_eq!(parsed, agent);
        assert!("user".parse::<Agent>().is_err());
    }
}
