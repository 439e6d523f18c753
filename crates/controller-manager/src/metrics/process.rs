//! The `process_*` families, read from Linux' `/proc` at each scrape. On other systems they are
//! absent.

use std::fs;
use std::path::{Path, PathBuf};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, Metric, MetricFamily, MetricType};

/// Ticks per second in `/proc/self/stat`: fixed by Linux' interface, independent of the kernel's
/// clock.
const TICKS_PER_SECOND: f64 = 100.0;
/// Go's value for "no limit": the largest unsigned integer, as a float.
const UNLIMITED: f64 = 18_446_744_073_709_552_000.0;

/// Name, help, type and value of each family.
type Family = (
    &'static str,
    &'static str,
    MetricType,
    fn(&Reading) -> Option<f64>,
);

const FAMILIES: [Family; 9] = [
    (
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        MetricType::COUNTER,
        |reading| reading.cpu_seconds,
    ),
    (
        "process_max_fds",
        "Maximum number of open file descriptors.",
        MetricType::GAUGE,
        |reading| reading.max_fds,
    ),
    (
        "process_network_receive_bytes_total",
        "Number of bytes received by the process over the network.",
        MetricType::COUNTER,
        |reading| reading.received_bytes,
    ),
    (
        "process_network_transmit_bytes_total",
        "Number of bytes sent by the process over the network.",
        MetricType::COUNTER,
        |reading| reading.sent_bytes,
    ),
    (
        "process_open_fds",
        "Number of open file descriptors.",
        MetricType::GAUGE,
        |reading| reading.open_fds,
    ),
    (
        "process_resident_memory_bytes",
        "Resident memory size in bytes.",
        MetricType::GAUGE,
        |reading| reading.resident_bytes,
    ),
    (
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        MetricType::GAUGE,
        |reading| reading.start_seconds,
    ),
    (
        "process_virtual_memory_bytes",
        "Virtual memory size in bytes.",
        MetricType::GAUGE,
        |reading| reading.virtual_bytes,
    ),
    (
        "process_virtual_memory_max_bytes",
        "Maximum amount of virtual memory available in bytes.",
        MetricType::GAUGE,
        |reading| reading.virtual_max_bytes,
    ),
];

/// Reads the kernel's statistics of this process.
///
/// Upstream: `collectors.NewProcessCollector`.
pub(super) struct ProcessCollector {
    /// `/proc`, or its substitute in a test.
    proc: PathBuf,
    descriptions: Vec<Desc>,
}

impl ProcessCollector {
    pub(super) fn new(proc: &Path) -> prometheus::Result<Self> {
        let describe = |&(name, help, ..): &Family| {
            Desc::new(name.to_owned(), help.to_owned(), Vec::new(), [].into())
        };
        Ok(Self {
            proc: proc.to_owned(),
            descriptions: FAMILIES.iter().map(describe).collect::<Result<_, _>>()?,
        })
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let reading = Reading::of(&self.proc);
        let family = |&(name, help, kind, value): &Family| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            family.set_metric(vec![metric(kind, value(&reading)?)]);
            Some(family)
        };
        FAMILIES.iter().filter_map(family).collect()
    }
}

fn metric(kind: MetricType, value: f64) -> Metric {
    let mut metric = Metric::default();
    if kind == MetricType::COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

/// Values read; `None` where the system doesn't provide one.
#[derive(Debug, Default, PartialEq)]
struct Reading {
    cpu_seconds: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
    virtual_bytes: Option<f64>,
    virtual_max_bytes: Option<f64>,
    resident_bytes: Option<f64>,
    start_seconds: Option<f64>,
    received_bytes: Option<f64>,
    sent_bytes: Option<f64>,
}

impl Reading {
    fn of(proc: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
        let (stat, status) = (read("self/stat"), read("self/status"));
        let (limits, netstat) = (read("self/limits"), read("self/net/netstat"));
        // The program's name is in parentheses and may contain anything.
        let stat: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_ascii_whitespace()
            .collect();
        let ticks = |index: usize| Some(stat.get(index)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        let both = |user: Option<f64>, system: Option<f64>| Some(user? + system?);
        let booted = word_after(&read("stat"), "btime ");
        Self {
            cpu_seconds: both(ticks(11), ticks(12)),
            open_fds: count_entries(&proc.join("self/fd")),
            max_fds: limit(&limits, "Max open files "),
            virtual_bytes: kilobytes(&status, "VmSize:"),
            virtual_max_bytes: limit(&limits, "Max address space "),
            resident_bytes: kilobytes(&status, "VmRSS:"),
            start_seconds: both(booted, ticks(19)),
            received_bytes: column(&netstat, "IpExt:", "InOctets"),
            sent_bytes: column(&netstat, "IpExt:", "OutOctets"),
        }
    }
}

/// Number that follows a prefix of a line.
fn word_after(text: &str, beginning: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn kilobytes(text: &str, beginning: &str) -> Option<f64> {
    Some(word_after(text, beginning)? * 1024.0)
}

/// Soft limit of a name.
fn limit(text: &str, beginning: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    match rest.split_ascii_whitespace().next()? {
        "unlimited" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

/// Number below a column name, in a two-line table whose lines share a prefix.
fn column(text: &str, beginning: &str, name: &str) -> Option<f64> {
    let mut rows = text.lines().filter(|line| line.starts_with(beginning));
    let (names, values) = (rows.next()?, rows.next()?);
    let mut both = names
        .split_ascii_whitespace()
        .zip(values.split_ascii_whitespace());
    both.find(|(found, _)| *found == name)?.1.parse().ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a process has far fewer than 2^53 files"
)]
fn count_entries(folder: &Path) -> Option<f64> {
    let count = fs::read_dir(folder).ok()?.count();
    // Listing the folder opens one more descriptor.
    Some(count.saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that imitates `/proc`, for a process with a confusing name.
    fn proc() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("self");
        fs::create_dir_all(own.join("net")).unwrap();
        fs::create_dir_all(own.join("fd")).unwrap();
        for descriptor in 0..5 {
            fs::write(own.join("fd").join(descriptor.to_string()), "").unwrap();
        }
        let fields: Vec<String> = (4..=52).map(|field| (field * 100).to_string()).collect();
        let stat = format!("7 (a) b (c) S {}\n", fields.join(" "));
        fs::write(own.join("stat"), stat).unwrap();
        fs::write(
            own.join("status"),
            "Name:\ta\nVmSize:\t  20 kB\nVmRSS:\t 3 kB\n",
        )
        .unwrap();
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        fs::write(own.join("limits"), limits).unwrap();
        let netstat =
            "TcpExt: A InOctets\nTcpExt: 1 2\nIpExt: InOctets X OutOctets\nIpExt: 30 4 50\n";
        fs::write(own.join("net/netstat"), netstat).unwrap();
        fs::write(folder.path().join("stat"), "cpu 1 2\nbtime 1700000000\n").unwrap();
        folder
    }

    #[test]
    fn statistics_are_read_from_proc() {
        let expected = Reading {
            // Fields 14 and 15, of 100 ticks each.
            cpu_seconds: Some(14.0 + 15.0),
            open_fds: Some(4.0),
            max_fds: Some(1024.0),
            virtual_bytes: Some(20_480.0),
            virtual_max_bytes: Some(UNLIMITED),
            resident_bytes: Some(3072.0),
            start_seconds: Some(1_700_000_022.0),
            received_bytes: Some(30.0),
            sent_bytes: Some(50.0),
        };
        assert_eq!(Reading::of(proc().path()), expected);
    }

    #[test]
    fn families_show_the_read_values() {
        let proc = proc();
        let found = ProcessCollector::new(proc.path()).unwrap().collect();
        let values = found.iter().map(|family| {
            let metric = &family.get_metric()[0];
            metric.get_counter().get_value() + metric.get_gauge().get_value()
        });
        let values: Vec<f64> = values.collect();
        let (cpu, unlimited) = (29.0, UNLIMITED);
        let expected = [
            cpu,
            1024.0,
            30.0,
            50.0,
            4.0,
            3072.0,
            1_700_000_022.0,
            20_480.0,
            unlimited,
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn missing_statistics_are_omitted() {
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(Reading::of(nothing.path()), Reading::default());
        let collector = ProcessCollector::new(nothing.path()).unwrap();
        assert!(collector.collect().is_empty());
        assert_eq!(collector.desc().len(), FAMILIES.len());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_process_has_every_family() {
        let collector = ProcessCollector::new(Path::new("/proc")).unwrap();
        let found = collector.collect();
        let names: Vec<&str> = found.iter().map(MetricFamily::name).collect();
        assert_eq!(names, FAMILIES.map(|(name, ..)| name));
    }
}
