//! What can be learned of an object without running any code of its class, whatever that is: from its layout alone.

use std::ffi::CStr;
use std::ptr::null_mut;

use crate::cpython::{Object, Python};

/// What an object is to CPython's own functions.
pub(crate) enum Container {
    Dict,
    List,
    Tuple,
}

impl Python {
    /// The type of an object, which keeps it.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    #[inline]
    pub(crate) unsafe fn kind(&self, object: Object) -> Object {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let kind = (self.type_of)(object);
            (self.release)(kind);
            kind
        }
    }

    /// Whether a type is another one or derived from it, by their layout: none of their code runs.
    ///
    /// # Safety
    /// As for [`small`](Self::small); both must be types.
    #[inline]
    pub(crate) unsafe fn is_derived(&self, kind: Object, base: Object) -> bool {
        // SAFETY: guaranteed by the caller.
        kind == base || unsafe { (self.is_subtype)(kind, base) } != 0
    }

    /// What an object of this type is to CPython's own functions for dictionaries, lists and tuples.
    ///
    /// # Safety
    /// As for [`small`](Self::small); `kind` must be a type.
    #[inline]
    pub(crate) unsafe fn container(&self, kind: Object) -> Option<Container> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match () {
                () if self.is_derived(kind, self.list_type) => Some(Container::List),
                () if self.is_derived(kind, self.tuple_type) => Some(Container::Tuple),
                () if self.is_derived(kind, self.dict_type) => Some(Container::Dict),
                () => None,
            }
        }
    }

    /// Whether an object is this text, or derived from it.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    pub(crate) unsafe fn is_text(&self, object: Object, text: &CStr) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.is_derived(self.kind(object), self.text_type) && (self.compare_text)(object, text.as_ptr()) == 0 }
    }

    /// The dictionary in which an object has its own attributes, a new reference; NULL if it has none. None of its code runs.
    ///
    /// # Safety
    /// As for [`small`](Self::small).
    #[inline]
    pub(crate) unsafe fn fields(&self, object: Object) -> Object {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let fields = (self.own_dict)(object, null_mut());
            if fields.is_null() {
                (self.clear)();
            }
            fields
        }
    }
}
