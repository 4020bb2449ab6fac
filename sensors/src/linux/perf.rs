//! Energy of the processor packages and their memory through perf, if powercap is closed: the PMU `power`.
//!
//! It needs CAP_PERFMON or a `perf_event_paranoid` of at most 0, and no file that only root may read. The kernel keeps
//! 64-bit counts, so these never wrap. One event is opened for each package, on the CPU that `cpumask` names for it.
//!
//! None is opened where system calls are filtered, since few programs open events and the filter may end the program for it, nor
//! where only a few files may be open, since a counter counts only while it is.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, RawFd};
use std::path::Path;

use gnntop_sessions::{HeldFile, Identity, has_few_numbers};

use super::parse::number_list;
use crate::has_syscall_filter;

/// The largest number of packages counted.
const MAX_PACKAGES: usize = 64;
/// `struct perf_event_attr` in its first published size: type, size and config, then what may stay zero.
const ATTRIBUTE_BYTES: usize = 64;
/// `_IOR('$', 7, u64)`, of `linux/perf_event.h`.
const PERF_EVENT_IOC_ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// One opened counter.
#[derive(Debug)]
pub(super) struct PerfCounter {
    /// The package, from 0.
    pub(super) package: u32,
    /// Whether it is the package's memory.
    pub(super) is_memory: bool,
    file: HeldFile,
    event: PerfEvent,
    cpu: u32,
}

/// An event of the PMU, as `/sys` describes it.
#[derive(Clone, Debug, PartialEq)]
struct PerfEvent {
    kind: u32,
    config: u64,
    joules_per_count: f64,
}

impl PerfCounter {
    /// Every counter that opens; empty if there is no such PMU, or this user may not use it.
    pub(super) fn open_all(sys_root: &Path) -> Vec<Self> {
        let pmu = sys_root.join("bus/event_source/devices/power");
        let cpus = number_list(&fs::read(pmu.join("cpumask")).unwrap_or_default(), MAX_PACKAGES);
        let mut all = Vec::new();
        for (event, is_memory) in [("energy-pkg", false), ("energy-ram", true)] {
            let Some(event) = PerfEvent::read(&pmu, event) else { continue };
            for (package, cpu) in (0..).zip(&cpus) {
                let Ok(file) = event.hold(*cpu) else { continue };
                all.push(Self { package, is_memory, file, event: event.clone(), cpu: *cpu });
            }
        }
        all
    }

    /// The energy since it was opened, in microjoules. It begins again at 0 if the program has closed it.
    pub(super) fn read_uj(&mut self) -> io::Result<i64> {
        if self.file.get().is_none() {
            self.file = self.event.hold(self.cpu)?;
        }
        let mut count = [0; 8];
        self.file.get().ok_or(io::ErrorKind::NotFound)?.read_exact(&mut count)?;
        // A count is 2^-32 J or so: a double holds years of them to the microjoule, and the cast saturates.
        Ok((u64::from_ne_bytes(count) as f64 * self.event.joules_per_count * 1e6) as i64)
    }
}

impl PerfEvent {
    /// Reads `type`, `events/NAME`, `.scale` and `.unit`.
    fn read(pmu: &Path, name: &str) -> Option<Self> {
        let text = |path: &str| fs::read_to_string(pmu.join(path)).ok().map(|text| text.trim().to_owned());
        let kind = text("type")?.parse().ok()?;
        let config = text(&format!("events/{name}"))?;
        let config = u64::from_str_radix(config.strip_prefix("event=")?.trim_start_matches("0x"), 16).ok()?;
        let scale: f64 = text(&format!("events/{name}.scale"))?.parse().ok()?;
        let is_joules = text(&format!("events/{name}.unit")).is_none_or(|unit| unit == "Joules");
        let is_sound = is_joules && scale > 0.0 && scale < 1.0;
        is_sound.then_some(Self { kind, config, joules_per_count: scale })
    }

    /// Starts counting on a CPU, and recognises the counter by its id: it has no inode of its own.
    fn hold(&self, cpu: u32) -> io::Result<HeldFile> {
        if has_syscall_filter() || has_few_numbers() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        HeldFile::identified_by(id, self.open(cpu)?)
    }

    /// Starts counting on a CPU, for all processes.
    fn open(&self, cpu: u32) -> io::Result<File> {
        let mut attribute = [0_u8; ATTRIBUTE_BYTES];
        attribute[..4].copy_from_slice(&self.kind.to_ne_bytes());
        attribute[4..8].copy_from_slice(&(ATTRIBUTE_BYTES as u32).to_ne_bytes());
        attribute[8..16].copy_from_slice(&self.config.to_ne_bytes());
        let (every_process, no_group, close_on_exec) = (-1_i64, -1_i64, 8_i64);
        // SAFETY: the kernel reads as many bytes of `attribute` as its size field says, which is its length, and
        // takes the other arguments by value.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attribute.as_ptr(),
                every_process,
                i64::from(cpu),
                no_group,
                close_on_exec,
            )
        };
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

/// A counter's id, which no other open file has.
fn id(counter: BorrowedFd<'_>) -> Option<Identity> {
    let mut id = 0_u64;
    // SAFETY: the kernel writes the id into `id`, or refuses the request for a file of another kind.
    let done = unsafe { libc::ioctl(counter.as_raw_fd(), PERF_EVENT_IOC_ID, &raw mut id) };
    (done == 0).then_some((0, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn perf_event_parses_kernel_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
        fs::create_dir(root.path().join("events")).unwrap();
        assert_eq!(PerfEvent::read(root.path(), "energy-pkg"), None);
        write("type", "21\n");
        write("events/energy-pkg", "event=0x02\n");
        write("events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
        write("events/energy-pkg.unit", "Joules\n");
        let event = PerfEvent { kind: 21, config: 2, joules_per_count: 2.0_f64.powi(-32) };
        assert_eq!(PerfEvent::read(root.path(), "energy-pkg"), Some(event));
        write("events/energy-pkg.unit", "Watts\n");
        assert_eq!(PerfEvent::read(root.path(), "energy-pkg"), None, "a unit that is not energy");
    }

    #[test]
    fn perf_event_missing_pmu_is_none() {
        let event = PerfEvent { kind: 0x7fff_fff0, config: 2, joules_per_count: 1e-9 };
        assert!(event.open(0).is_err());
        assert_eq!(id(File::open("/dev/null").unwrap().as_fd()), None);
        assert!(PerfCounter::open_all(Path::new("/nowhere")).is_empty());
    }
}
