//! Adds a section to a program, which doesn't become a part of its memory. Pure.

use anyhow::{Context as _, Result, ensure};

use super::number;

/// Position of the table's offset in the header of the program.
const TABLE: usize = 40;
/// Positions of the size of the table's entries, then their count, then the section with the names.
const ENTRIES: usize = 58;
/// Size of an entry of the table.
const ENTRY: u16 = 64;
/// Types of sections.
const DATA: u32 = 1;
const STRINGS: u32 = 3;
const ALIGNMENT: usize = 8;

/// An entry of the table of sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Section {
    /// Position in the section of names.
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    alignment: u64,
    entry_size: u64,
}

impl Section {
    fn read(program: &[u8], at: usize) -> Result<Self> {
        let entry: [u8; ENTRY as usize] = number(program, at)?;
        let short = |at| Ok::<_, anyhow::Error>(u32::from_le_bytes(number(&entry, at)?));
        let long = |at| Ok::<_, anyhow::Error>(u64::from_le_bytes(number(&entry, at)?));
        Ok(Self {
            name: short(0)?,
            kind: short(4)?,
            flags: long(8)?,
            address: long(16)?,
            offset: long(24)?,
            size: long(32)?,
            link: short(40)?,
            info: short(44)?,
            alignment: long(48)?,
            entry_size: long(56)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.name.to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        for field in [self.flags, self.address, self.offset, self.size] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.link.to_le_bytes());
        out.extend(self.info.to_le_bytes());
        out.extend(self.alignment.to_le_bytes());
        out.extend(self.entry_size.to_le_bytes());
    }
}

/// The table of sections, and the content of the section with their names.
#[derive(Debug)]
struct Table {
    sections: Vec<Section>,
    /// Position of the section with the names.
    names: u16,
    strings: Vec<u8>,
}

impl Table {
    fn read(program: &[u8]) -> Result<Self> {
        let offset = u64::from_le_bytes(number(program, TABLE)?);
        if offset == 0 {
            return Ok(Self::empty());
        }
        let [size, count, names] = fields(program)?;
        ensure!(
            size == ENTRY && count > 0,
            "it has a table of sections that is not supported"
        );
        let start = usize::try_from(offset)?;
        let position = |index: u16| start.saturating_add(usize::from(index) * usize::from(ENTRY));
        let sections = (0..count).map(|index| Section::read(program, position(index)));
        let sections: Vec<Section> = sections.collect::<Result<_>>()?;
        let strings = sections.get(usize::from(names)).and_then(|section| {
            let start = usize::try_from(section.offset).ok()?;
            let end = start.checked_add(usize::try_from(section.size).ok()?)?;
            program.get(start..end)
        });
        let strings = strings.context("the names of its sections are missing")?.to_vec();
        Ok(Self {
            sections,
            names,
            strings,
        })
    }

    /// Returns the table of a program that has no sections: the first entry is unused.
    fn empty() -> Self {
        let mut table = Self {
            sections: vec![Section::default()],
            names: 1,
            strings: vec![0],
        };
        let name = table.add_name(".shstrtab");
        table.sections.push(Section {
            name,
            kind: STRINGS,
            alignment: 1,
            ..Section::default()
        });
        table
    }

    fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| {
            let start = usize::try_from(section.name).ok();
            let rest = start.and_then(|start| self.strings.get(start..));
            let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    fn add_name(&mut self, name: &str) -> u32 {
        let at = self.strings.len();
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        u32::try_from(at).unwrap_or(u32::MAX)
    }
}

/// Returns the program with one more section after everything that it has. A section of this name stays as it is.
pub(crate) fn add(mut program: Vec<u8>, name: &str, content: &[u8]) -> Result<Vec<u8>> {
    let mut table = Table::read(&program)?;
    if table.has(name) {
        return Ok(program);
    }
    let name = table.add_name(name);
    table.sections.push(Section {
        name,
        kind: DATA,
        offset: append(&mut program, content),
        size: content.len() as u64,
        alignment: 1,
        ..Section::default()
    });
    let strings = append(&mut program, &table.strings);
    let names = table.sections.get_mut(usize::from(table.names));
    let names = names.context("the names of its sections are missing")?;
    (names.offset, names.size) = (strings, table.strings.len() as u64);
    let mut entries = Vec::new();
    table
        .sections
        .iter()
        .for_each(|section| section.write(&mut entries));
    let offset = append(&mut program, &entries);
    let count = u16::try_from(table.sections.len()).context("it has too many sections")?;
    replace(&mut program, TABLE, &offset.to_le_bytes())?;
    let fields = [ENTRY, count, table.names].map(u16::to_le_bytes);
    replace(&mut program, ENTRIES, fields.as_flattened())?;
    Ok(program)
}

/// Returns the size of an entry of the table, their count, and the position of the section with the names.
fn fields(program: &[u8]) -> Result<[u16; 3]> {
    let read = |at: usize| Ok::<_, anyhow::Error>(u16::from_le_bytes(number(program, at)?));
    Ok([read(ENTRIES)?, read(ENTRIES + 2)?, read(ENTRIES + 4)?])
}

/// Appends bytes at the next aligned position, and returns it.
fn append(program: &mut Vec<u8>, bytes: &[u8]) -> u64 {
    program.resize(program.len().next_multiple_of(ALIGNMENT), 0);
    let at = program.len() as u64;
    program.extend(bytes);
    at
}

fn replace(program: &mut [u8], at: usize, bytes: &[u8]) -> Result<()> {
    let target = program.get_mut(at..at + bytes.len());
    target.context("its headers are cut off")?.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, process::Command};

    use super::*;

    const NAME: &str = ".list";

    /// Returns the contents of all sections with this name.
    fn contents<'a>(program: &'a [u8], name: &str) -> Vec<&'a [u8]> {
        let table = Table::read(program).unwrap();
        let wanted = [name.as_bytes(), b"\0"].concat();
        let named = table.sections.iter().filter(|section| {
            let rest = &table.strings[section.name as usize..];
            rest.starts_with(&wanted)
        });
        named
            .map(|section| &program[section.offset as usize..][..section.size as usize])
            .collect()
    }

    /// Returns the header of a program without sections.
    fn bare() -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes
    }

    #[test]
    fn a_program_with_one_more_section_still_runs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let before = Table::read(&own).unwrap().sections;
        let changed = add(own.clone(), NAME, b"content").unwrap();
        assert_eq!(contents(&changed, NAME), [b"content"]);
        let after = Table::read(&changed).unwrap();
        assert_eq!(after.sections.len(), before.len() + 1);
        assert_eq!(contents(&changed, ".text"), contents(&own, ".text"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::write(&path, &changed).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(&path).arg("--list").output().unwrap();
        assert!(output.status.success());
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("a_program_with_one_more_section_still_runs")
        );
    }

    #[test]
    fn programs_without_sections_get_a_table() {
        let once = add(bare(), NAME, b"content").unwrap();
        assert_eq!(contents(&once, NAME), [b"content"]);
        assert_eq!(contents(&once, ".shstrtab").len(), 1);
        let twice = add(once.clone(), ".other", b"").unwrap();
        assert_eq!(contents(&twice, NAME), [b"content"]);
        assert_eq!(contents(&twice, ".other"), [b""]);
        // The names of other sections begin or end with it.
        for name in [".li", "list", ".list.more"] {
            assert_eq!(contents(&add(once.clone(), name, b"1").unwrap(), name), [b"1"]);
        }
    }

    #[test]
    fn a_section_of_the_name_stays() {
        let once = add(bare(), NAME, b"content").unwrap();
        assert_eq!(add(once.clone(), NAME, b"other").unwrap(), once);
    }

    #[test]
    fn damaged_tables_are_refused() {
        let whole = add(bare(), NAME, b"content").unwrap();
        let changed = |at: usize, bytes: &[u8]| {
            let mut program = whole.clone();
            program[at..at + bytes.len()].copy_from_slice(bytes);
            program
        };
        for (program, why) in [
            (b"\x7fELF".to_vec(), "cut off"),
            (whole[..whole.len() - 1].to_vec(), "cut off"),
            (changed(TABLE, &u64::MAX.to_le_bytes()), "cut off"),
            (changed(ENTRIES, &[40]), "not supported"),
            (changed(ENTRIES + 2, &[0, 0]), "not supported"),
            (changed(ENTRIES + 4, &[9]), "names of its sections"),
        ] {
            let error = add(program, ".other", b"").unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
