//! Programs of images, which run as in Pods.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Output},
};

use dist::Architecture;

use crate::support::{AARCH64, TestRelease, X86_64, names, program, root};

/// Runs a command as the user of images, who may write into the folder `volume`, with the environment of images.
fn run(volume: &Path, command: &[&str]) -> Output {
    Command::new(root().join("hack/confined.sh"))
        .arg(volume)
        .args(["env", "--ignore-environment", "PATH=/usr/bin:/bin", "HOME=/tmp"])
        .args(command)
        .current_dir("/")
        .output()
        .unwrap()
}

/// Makes folders that the user of images may enter, and one that it may write.
fn open(dir: &Path, volume: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(volume).unwrap();
    fs::set_permissions(volume, fs::Permissions::from_mode(0o1777)).unwrap();
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Prepares a release for this machine with one real program: they are large in debug builds, and `make dist-demo` runs all of them.
fn release_with(real: &str, architecture: Architecture) -> TestRelease {
    let mut work = TestRelease::new();
    let machine = match architecture {
        Architecture::Amd64 => X86_64,
        Architecture::Arm64 => AARCH64,
    };
    let folder = work.path("native");
    fs::create_dir(&folder).unwrap();
    for name in names() {
        let path = folder.join(name);
        if name == real {
            symlink(testkit::controller::find_program(name).unwrap(), path).unwrap();
        } else {
            fs::write(path, program(machine, name)).unwrap();
        }
    }
    work.options.programs = vec![folder];
    // It needs the loader of this machine.
    work.options.allow_dynamic = true;
    work.options.release.compression = 0;
    work
}

#[test]
fn the_program_of_an_image_runs_as_an_ordinary_user() {
    let (name, architecture) = ("notification-controller", Architecture::native().unwrap());
    let work = release_with(name, architecture);
    dist::build(&work.options).unwrap();
    let images = work.path("images");
    dist::unpack(&work.options.out, &images).unwrap();
    let volume = work.path("volume");
    open(&work.path(""), &volume);
    let image = images.join(name).join(architecture.to_string());
    let program = image.join("usr/local/bin").join(name);
    for (flag, part) in [("--version", env!("CARGO_PKG_VERSION")), ("--help", "Usage: ")] {
        let output = run(&volume, &[program.to_str().unwrap(), flag]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(part), "{output:?}");
    }
}

#[test]
fn commands_are_confined_to_a_folder_where_this_is_root() {
    let work = TestRelease::new();
    let volume = work.path("volume");
    open(&work.path(""), &volume);
    let file = volume.join("file");
    let output = run(&volume, &["touch", file.to_str().unwrap()]);
    assert!(output.status.success() && file.exists(), "{output:?}");
    let user = fs::metadata(&file).unwrap().uid();
    if !is_root() {
        assert_eq!(user, fs::metadata("/proc/self").unwrap().uid());
        return;
    }
    assert_eq!(user, 65532);
    let capabilities = run(&volume, &["grep", "^CapBnd:", "/proc/self/status"]);
    assert_eq!(
        String::from_utf8_lossy(&capabilities.stdout),
        "CapBnd:\t0000000000000000\n"
    );
    for folder in ["arm", "intel"] {
        let path = work.path(folder).join("file");
        let output = run(&volume, &["touch", path.to_str().unwrap()]);
        assert!(!output.status.success() && !path.exists(), "{output:?}");
    }
}
