//! Lists the controllers of this workspace: the crates whose names end in `-controller`.

use std::{env, error::Error, fs, path::Path};

/// The controller that starts first, because the others post their events to it.
const FIRST: &str = "notification-controller";

fn main() -> Result<(), Box<dyn Error>> {
    let own = env::var("CARGO_MANIFEST_DIR")?;
    let crates = Path::new(&own).join("..");
    // A new crate changes the lock file.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let mut names = Vec::new();
    for entry in fs::read_dir(&crates)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with("-controller") && crates.join(&name).join("Cargo.toml").is_file() {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (name != FIRST, name.clone()));
    let list = format!("&{names:?}");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("controllers.rs"), list)?;
    Ok(())
}
