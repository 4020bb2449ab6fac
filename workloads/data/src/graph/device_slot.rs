//! A device's copy of something in host memory: a slot beside the original, filled when a kernel first needs the copy.
//! The slot knows no device and no type, so that its owner need not know them either.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{Device, DeviceLocation, Result};

/// The copy on one device, and the material for it.
#[derive(Default)]
pub struct DeviceSlot {
    copy: Mutex<Option<(DeviceLocation, Arc<dyn Any + Send + Sync>)>>,
    staged: Mutex<Option<Box<dyn Any + Send>>>,
}

impl DeviceSlot {
    /// The copy on this device, made by `make` if there is none yet. Replaces a copy on another device.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get<T: Any + Send + Sync>(&self, device: &Device, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut copy = lock(&self.copy);
        if let Some((location, made)) = &*copy
            && *location == device.location()
            && let Ok(made) = Arc::clone(made).downcast()
        {
            return Ok(made);
        }
        let made = Arc::new(make()?);
        *copy = Some((device.location(), made.clone()));
        Ok(made)
    }

    /// Stores the material for a copy, prepared before its use.
    pub fn stage(&self, made: impl Any + Send) {
        *lock(&self.staged) = Some(Box::new(made));
    }

    /// What was staged, for the first caller.
    pub fn take_staged<T: Any>(&self) -> Option<T> {
        lock(&self.staged).take()?.downcast().ok().map(|staged| *staged)
    }

    /// Forgets both, because the original has changed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A clone of the original is copied to the device again when needed.
impl Clone for DeviceSlot {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The copy on a device is not part of the original's value.
impl fmt::Debug for DeviceSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceSlot")
    }
}

/// Locks even after a panic: what a slot holds is only ever replaced as a whole.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_once_and_forgotten_when_the_original_changes() {
        let mut slot = DeviceSlot::default();
        slot.stage(String::from("staged"));
        let first = slot.get(&Device::Cpu, || Ok(slot.take_staged::<String>())).unwrap();
        assert_eq!(first.as_deref(), Some("staged"));
        let again = slot.get(&Device::Cpu, || candle_core::bail!("made twice")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        slot.stage(1u32);
        slot.clear();
        assert_eq!(slot.take_staged::<u32>(), None);
        assert_eq!(*slot.get(&Device::Cpu, || Ok(2u32)).unwrap(), 2);
        assert_eq!(*slot.clone().get(&Device::Cpu, || Ok(3u32)).unwrap(), 3, "a clone has no copy yet");
    }

    #[test]
    fn another_type_is_made_anew_and_a_failure_leaves_nothing() {
        let slot = DeviceSlot::default();
        assert!(slot.get::<u32>(&Device::Cpu, || candle_core::bail!("no memory")).is_err());
        assert_eq!(*slot.get(&Device::Cpu, || Ok(1u32)).unwrap(), 1);
        assert_eq!(*slot.get(&Device::Cpu, || Ok(2u64)).unwrap(), 2);
    }
}
