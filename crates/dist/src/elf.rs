//! The headers and sections of programs.

pub(crate) mod section;

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};

/// Machines in `e_machine`.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// Type of the program header that names a dynamic loader.
const INTERPRETER: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    /// Returns the architecture of this machine, if there are releases for it.
    #[must_use]
    pub fn native() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// Parses the name that images have for it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = [Self::Amd64, Self::Arm64].into_iter();
        all.find(|architecture| architecture.to_string() == name)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        })
    }
}

/// The properties of a program that decide where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub architecture: Architecture,
    /// True if it needs no dynamic loader, and so runs in an image without one.
    pub is_static: bool,
}

impl Header {
    /// # Errors
    /// If it is not a program for Linux on a supported architecture.
    pub fn read(program: &[u8]) -> Result<Self> {
        ensure!(program.starts_with(b"\x7fELF"), "it is not an ELF program");
        ensure!(
            program.get(4..6) == Some(&[2, 1]),
            "it is not a little-endian program of 64 bits"
        );
        let architecture = match u16::from_le_bytes(number(program, 18)?) {
            X86_64 => Architecture::Amd64,
            AARCH64 => Architecture::Arm64,
            other => bail!("its machine {other} is neither x86_64 nor aarch64"),
        };
        let start = u64::from_le_bytes(number(program, 32)?);
        let size = u16::from_le_bytes(number(program, 54)?);
        let count = u16::from_le_bytes(number(program, 56)?);
        let mut is_static = true;
        for index in 0..count {
            let at = start.saturating_add(u64::from(index) * u64::from(size));
            let kind = u32::from_le_bytes(number(program, usize::try_from(at)?)?);
            is_static &= kind != INTERPRETER;
        }
        Ok(Self {
            architecture,
            is_static,
        })
    }
}

fn number<const N: usize>(program: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N);
    let bytes = end.and_then(|end| program.get(at..end));
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.context("its headers are cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&8_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(kinds.len() as u16).to_le_bytes());
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    #[test]
    fn architecture_and_loader_are_found() {
        for (machine, architecture) in [(62, Architecture::Amd64), (183, Architecture::Arm64)] {
            for (kinds, is_static) in [(&[1, 2][..], true), (&[6, 3, 1], false), (&[], true)] {
                let header = Header::read(&program(machine, kinds)).unwrap();
                let expected = Header {
                    architecture,
                    is_static,
                };
                assert_eq!(header, expected);
            }
        }
    }

    #[test]
    fn this_test_has_the_native_architecture() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let header = Header::read(&own).unwrap();
        assert_eq!(Some(header.architecture), Architecture::native());
    }

    #[test]
    fn other_files_are_refused() {
        let cut = program(62, &[1, 3]);
        let mut far = program(62, &[1]);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        for (bytes, why) in [
            (b"#!/bin/sh".to_vec(), "not an ELF"),
            (b"\x7fELF\x01\x01".to_vec(), "64 bits"),
            (program(8, &[]), "machine 8"),
            (cut[..72].to_vec(), "cut off"),
            (far, "cut off"),
            (b"\x7fELF\x02\x01".to_vec(), "cut off"),
        ] {
            let error = Header::read(&bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
