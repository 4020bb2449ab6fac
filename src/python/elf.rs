//! Finds a section in a 64-bit ELF file. Its numbers are checked against the file's size.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most sections of a file that are read.
const MAX_SECTIONS: u16 = 256;
/// Kind of a program header: a part that is loaded.
const LOAD: u32 = 1;

/// Offset of the section with this name from where the file's beginning is loaded; `None` if there is none.
pub(super) fn section(file: &File, name: &[u8]) -> Option<u64> {
    let header: [u8; 64] = read(file, 0)?;
    // 64 bits, little-endian.
    if header[..6] != *b"\x7FELF\x02\x01" {
        return None;
    }
    let sections = Sections::read(file, &header)?;
    let address = sections.address(name)?;
    Some(address.wrapping_sub(load_address(file, &header)?))
}

fn read<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}

/// The table of sections, and where their names are.
struct Sections<'a> {
    file: &'a File,
    at: u64,
    count: u16,
    names_at: u64,
}

impl<'a> Sections<'a> {
    fn read(file: &'a File, header: &[u8]) -> Option<Self> {
        let (at, count, names) = (u64_at(header, 0x28)?, u16_at(header, 0x3C)?, u16_at(header, 0x3E)?);
        let mut sections = Self { file, at, count: count.min(MAX_SECTIONS), names_at: 0 };
        sections.names_at = u64_at(&sections.header(names)?, 0x18)?;
        Some(sections)
    }

    fn header(&self, index: u16) -> Option<[u8; 64]> {
        read(self.file, self.at.checked_add(u64::from(index) * 64)?)
    }

    fn address(&self, name: &[u8]) -> Option<u64> {
        (0..self.count).filter_map(|index| self.header(index)).find_map(|header| {
            let mut found = vec![0; name.len() + 1];
            let at = self.names_at.checked_add(u64::from(u32_at(&header, 0)?))?;
            self.file.read_exact_at(&mut found, at).ok()?;
            (found.strip_suffix(b"\0") == Some(name)).then(|| u64_at(&header, 0x10))?
        })
    }
}

/// The address that the file's beginning is meant for, the start of its page.
fn load_address(file: &File, header: &[u8]) -> Option<u64> {
    let (at, count) = (u64_at(header, 0x20)?, u16_at(header, 0x38)?);
    (0..count).find_map(|index| {
        let program: [u8; 56] = read(file, at.checked_add(u64::from(index) * 56)?)?;
        let (address, align) = (u64_at(&program, 0x10)?, u64_at(&program, 0x30)?.max(1));
        (u32_at(&program, 0)? == LOAD).then(|| address - address % align)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn sections_of_this_program_are_found() {
        let own = File::open("/proc/self/exe").unwrap();
        let text = section(&own, b".text").unwrap();
        assert!(text > 0 && text < own.metadata().unwrap().len());
        assert_eq!(section(&own, b".PyRuntime"), None);
    }

    #[test]
    fn invalid_or_cut_elf_has_no_sections() {
        let own = std::fs::read("/proc/self/exe").unwrap_or_default();
        for bytes in [&b""[..], b"\x7FELF", &[0xFF; 200], &own[..own.len().min(4000)]] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert_eq!(section(&file, b".text"), None);
        }
        let mut hostile = vec![0xFF; 64];
        hostile[..6].copy_from_slice(b"\x7FELF\x02\x01");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&hostile).unwrap();
        assert_eq!(section(&file, b".text"), None);
    }
}
