//! The image, started without a container engine: its files in an empty root folder, its process,
//! the shipped Deployment's user and flags, and the files that the kubelet mounts.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use e2e::deploy::{build, collection, is_embedded, kustomization};
use release::archive::Entry;
use release::image::image;
use release::opened::Opened;
use release::platform::{PLATFORMS, PROGRAMS};
use release::release::Release;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::deploy::{Port, free_port, of_kind, port_client};
use crate::harness::{History, Kind, Plane, Process, Programs, Signal, programs, set};

/// Where the kubelet mounts the account.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// Devices that every container runtime provides and a static program reads, with their minor numbers.
const DEVICES: [(&str, &str); 2] = [("random", "8"), ("urandom", "9")];

/// Go's name of this machine's processor.
pub(crate) fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => panic!("no image is built for {other}"),
    }
}

/// The program and, because the tests' one is linked dynamically, its libraries.
fn files_of(program: &Path) -> Vec<Entry> {
    let listing = Command::new("ldd").arg(program).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let paths = listing.split_whitespace().filter(|it| it.starts_with('/'));
    let libraries = paths.map(|path| {
        let bytes = std::fs::read(path).unwrap();
        Entry::program(path.trim_start_matches('/'), bytes)
    });
    // Without symbols: the unoptimized compression takes seconds for each megabyte.
    let stripped = tempfile::NamedTempFile::new().unwrap();
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(stripped.path()).arg(program);
    assert!(strip.status().unwrap().success(), "{strip:?}");
    let own = Entry::program(PROGRAMS[0].name, std::fs::read(stripped.path()).unwrap());
    libraries.chain([own]).collect()
}

/// The archive of an image of the tests' program.
fn archive(programs: &Programs) -> Vec<u8> {
    let release = Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: "0".repeat(40),
        seconds: 0,
        source: "https://source.invalid".to_owned(),
    };
    let platform = PLATFORMS.into_iter().find(|it| it.arch == arch()).unwrap();
    let [program, ..] = PROGRAMS;
    let root = [(platform, files_of(&programs.controller))];
    let image = image(&release, &program, program.image.unwrap(), &root);
    image.unwrap().archive
}

/// Writes the image's files, and those that the kubelet mounts, into a folder.
fn root_folder(files: &[Entry], plane: &Plane, namespace: &str, name: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let everyone = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(root.path(), everyone).unwrap();
    for file in files {
        let path = root.path().join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &file.bytes).unwrap();
        let mode = if file.executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let account = root.path().join(ACCOUNT);
    std::fs::create_dir_all(&account).unwrap();
    let authority = &plane.kubeconfig()["clusters"][0]["cluster"]["certificate-authority-data"];
    let authority = STANDARD.decode(authority.as_str().unwrap()).unwrap();
    std::fs::write(account.join("ca.crt"), authority).unwrap();
    std::fs::write(account.join("token"), plane.token(namespace, name)).unwrap();
    std::fs::write(account.join("namespace"), namespace).unwrap();
    root
}

/// Starts a process of the image in its root folder. Root takes the Deployment's user; another user
/// stays itself, within a namespace in which it may change the root folder.
fn start(root: &Path, process: &Value, user: u64, arguments: &[String], server: &str) -> Process {
    let devices = root.join("dev");
    std::fs::create_dir(&devices).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        for (name, minor) in DEVICES {
            let mut make = Command::new("mknod");
            make.arg("--mode=666").arg(devices.join(name));
            make.args(["c", "1", minor]);
            assert!(make.status().unwrap().success(), "{make:?}");
        }
        let mut command = Command::new("chroot");
        command.args([
            format!("--userspec=+{user}:+{user}"),
            "--groups=".to_owned(),
        ]);
        command
    } else {
        let mut script = String::new();
        for (name, _) in DEVICES {
            std::fs::write(devices.join(name), "").unwrap();
            writeln!(script, "mount --bind /dev/{name} \"$0/{name}\" || exit").unwrap();
        }
        let mut command = Command::new("unshare");
        let script = script + "exec chroot \"$@\"";
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
        command.arg(&devices);
        command
    };
    let path = std::env::var_os("PATH").unwrap();
    let (host, port) = server.rsplit_once(':').unwrap();
    let entrypoint = process["Entrypoint"].as_array().unwrap();
    command
        .arg(root)
        .args(entrypoint.iter().map(|it| it.as_str().unwrap()))
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("KUBERNETES_SERVICE_HOST", host)
        .env("KUBERNETES_SERVICE_PORT", port);
    Process::start("image", &mut command)
}

/// Starts the image of this machine's processor as the shipped Deployment does, asks its probes, and
/// lets it create a set.
pub(crate) fn assert_image_works(archive: &[u8], programs: &Programs) {
    let (config, files) = Opened::of(archive).unwrap().image(arch()).unwrap();
    let objects = build(&kustomization("overlays/self-managed"));
    let plane = Plane::start(programs, "0s");
    for object in &objects {
        if is_embedded(object["kind"].as_str().unwrap()) {
            plane.api.post(&collection(object), object);
        }
    }
    let account = &of_kind(&objects, "ServiceAccount")["metadata"];
    let (namespace, name) = (&account["namespace"], &account["name"]);
    let (namespace, name) = (namespace.as_str().unwrap(), name.as_str().unwrap());
    let root = root_folder(&files, &plane, namespace, name);

    let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let user = pod["securityContext"]["runAsUser"].as_u64().unwrap();
    let group = pod["securityContext"]["runAsGroup"].as_u64().unwrap();
    let process = &config["config"];
    assert_eq!(process["User"], format!("{user}:{group}"));
    let port = container["ports"][0]["containerPort"].as_u64().unwrap();
    assert_eq!(process["ExposedPorts"], json!({format!("{port}/tcp"): {}}));

    // Other tests may use the Deployment's port, and the tests' servers listen on loopback only.
    let port = Port {
        number: free_port(),
        trust: None,
    };
    let mut arguments: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    arguments.push(format!("--secure-port={}", port.number));
    arguments.push("--bind-address=127.0.0.1".to_owned());
    let server = plane.kubeconfig()["clusters"][0]["cluster"]["server"].as_str();
    let server = server.unwrap().strip_prefix("https://").unwrap();
    let mut history = History::begin(&plane.api);
    let controller = start(root.path(), process, user, &arguments, server);
    plane.api.create(Kind::Set, &set("web", 3));
    history.until("the set to be complete", |history| {
        history.is_complete("web")
    });

    let probes = port_client(root.path(), &port, &json!({}));
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let path = container[probe]["httpGet"]["path"].as_str().unwrap();
        assert_eq!(probes.text(path).unwrap(), "ok", "{probe}");
    }
    if rustix::process::geteuid().is_root() {
        assert_eq!(u64::from(controller.user()), user);
    }
    controller.signal(Signal::TERM);
    assert_eq!(controller.wait().code, Some(0));
}

#[test]
fn image_serves_in_an_empty_root_as_deployed() {
    let programs = programs();
    assert_image_works(&archive(&programs), &programs);
}
