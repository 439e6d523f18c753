//! Values built from files, rebuilt when the files change.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use ring::digest::{Context, SHA256};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use kube_apimachinery::error_line::error_line;

/// Time between two reads of the files.
///
/// Upstream reads once a minute, and when the kernel reports a change.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Builds a value from the contents of its files, in their order.
type Make<T> = dyn Fn(&[Vec<u8>]) -> anyhow::Result<T> + Send + Sync;

/// A value that follows its files.
pub(crate) struct FromFiles<T> {
    what: &'static str,
    files: Vec<PathBuf>,
    make: Box<Make<T>>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
}

/// Result of the last read.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    digest: Vec<u8>,
    /// Reason why the files can't be read or used.
    trouble: Option<String>,
}

/// A value that may have changed since the last refresh.
pub(crate) trait Refresh: Send + Sync {
    /// Reads the files. A failure is logged once, and the earlier value stays in use.
    fn refresh(&self);
}

impl<T> FromFiles<T> {
    /// Reads the files for the first time. `what` names the value in logs, such as `serving
    /// certificate`.
    ///
    /// # Errors
    ///
    /// A file can't be read, or is invalid.
    pub(crate) fn load(
        what: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn(&[Vec<u8>]) -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let contents = read(&files).with_context(|| format!("load the {what}"))?;
        let made = make(&contents).with_context(|| {
            let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
            format!("load the {what} from {}", names.join(" and "))
        })?;
        Ok(Self {
            what,
            make: Box::new(make),
            current: RwLock::new(Arc::new(made)),
            seen: Mutex::new(Seen {
                digest: digest(&contents),
                trouble: None,
            }),
            files,
        })
    }

    /// The latest value.
    pub(crate) fn current(&self) -> Arc<T> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Rebuilds the value if the files have changed; returns whether it did.
    fn try_refresh(&self, seen: &mut Seen) -> anyhow::Result<bool> {
        let contents = read(&self.files)?;
        let digest = digest(&contents);
        if digest == seen.digest {
            return Ok(false);
        }
        let made = Arc::new((self.make)(&contents)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = made;
        seen.digest = digest;
        Ok(true)
    }
}

impl<T: Send + Sync> Refresh for FromFiles<T> {
    fn refresh(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let what = self.what;
        let file = self.files.first().map(|it| it.display().to_string());
        let file = file.unwrap_or_default();
        match self.try_refresh(&mut seen) {
            Ok(changed) => {
                if changed || seen.trouble.is_some() {
                    tracing::info!(file, "the {what} was reloaded");
                }
                seen.trouble = None;
            }
            Err(error) => {
                let error = error_line(error.as_ref());
                if seen.trouble.as_ref() != Some(&error) {
                    tracing::warn!(
                        file,
                        error,
                        "cannot use the new {what}, keeping the old one"
                    );
                }
                seen.trouble = Some(error);
            }
        }
    }
}

fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Vec<u8>>> {
    let one = |file: &PathBuf| {
        std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
    };
    files.iter().map(one).collect()
}

/// A digest detects changes without keeping the contents, which include keys.
fn digest(contents: &[Vec<u8>]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for content in contents {
        context.update(&content.len().to_be_bytes());
        context.update(content);
    }
    context.finish().as_ref().to_vec()
}

/// Refreshes the values periodically until `stop`.
pub(crate) async fn follow(all: Vec<Arc<dyn Refresh>>, stop: CancellationToken) {
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let look = stop.run_until_cancelled(looks.tick()).await;
        if look.is_none() {
            return;
        }
        for one in &all {
            one.refresh();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anyhow::ensure;
    use tokio::time::sleep;

    use super::*;
    use crate::serving::fixture::spawn;

    fn numbers(contents: &[Vec<u8>]) -> anyhow::Result<Vec<u32>> {
        let text = |content: &Vec<u8>| String::from_utf8(content.clone());
        let texts: Result<Vec<String>, _> = contents.iter().map(text).collect();
        let numbers = texts?.iter().map(|text| text.trim().parse()).collect();
        let numbers: Result<Vec<u32>, std::num::ParseIntError> = numbers;
        let numbers = numbers?;
        ensure!(numbers.iter().all(|number| *number < 10), "too great");
        Ok(numbers)
    }

    #[tokio::test(start_paused = true)]
    async fn changed_files_are_reloaded_and_bad_ones_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let files = vec![folder.path().join("a"), folder.path().join("b")];
        fs::write(&files[0], "1").unwrap();
        fs::write(&files[1], "2").unwrap();
        let made = Arc::new(FromFiles::load("pair", files.clone(), numbers).unwrap());
        let stop = CancellationToken::new();
        let all: Vec<Arc<dyn Refresh>> = vec![Arc::clone(&made) as Arc<dyn Refresh>];
        let following = spawn(follow(all, stop.clone()));
        assert_eq!(*made.current(), [1, 2]);
        for (content, expected) in [
            ("3", [3, 2]),
            ("99", [3, 2]),
            ("x", [3, 2]),
            ("", [3, 2]),
            ("4", [4, 2]),
        ] {
            fs::write(&files[0], content).unwrap();
            sleep(LOOK_INTERVAL).await;
            assert_eq!(*made.current(), expected, "{content:?}");
        }
        fs::remove_file(&files[1]).unwrap();
        sleep(LOOK_INTERVAL).await;
        assert_eq!(*made.current(), [4, 2]);
        fs::write(&files[1], "5").unwrap();
        sleep(LOOK_INTERVAL).await;
        assert_eq!(*made.current(), [4, 5]);
        stop.cancel();
        following.await.unwrap();
    }

    #[test]
    fn load_reports_unusable_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let load = || {
            let loaded = FromFiles::load("pair", vec![file.clone()], numbers);
            loaded.err().map(|error| error_line(error.as_ref()))
        };
        let name = file.display();
        assert_eq!(
            load().unwrap(),
            format!("load the pair: cannot read {name}: No such file or directory (os error 2)")
        );
        fs::write(&file, "12").unwrap();
        assert_eq!(
            load().unwrap(),
            format!("load the pair from {name}: too great")
        );
    }

    #[test]
    fn digest_depends_on_file_boundaries() {
        let contents = |a: &str, b: &str| [a.as_bytes().to_vec(), b.as_bytes().to_vec()];
        assert_ne!(digest(&contents("ab", "c")), digest(&contents("a", "bc")));
    }
}
