//! Linker options of the program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let has =
        |name: &str, value: &str| env::var(name).is_ok_and(|all| all.split(',').any(|one| one == value));
    let is_dynamic = !has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_CFG_TARGET_ENV", "gnu") && is_dynamic {
        // A program at a fixed address needs no relocation: 54,000 pointers at each start, most of which are never used,
        // took longer than the rest of a short command. Stack, heap and libraries still lie where chance puts them. The
        // controllers are linked as usual.
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // The unwinder is linked statically. As a library it asks for the features of the processor at each start, for
        // functions that nobody calls, and where there is a hypervisor each of these questions is put to that.
        println!("cargo::rustc-link-lib=static=gcc_eh");
    }
}
