//! The part of the C interface by which gnntop finds the steps of a loop: `include/gnntop.h` describes each call.
#![allow(missing_docs, reason = "the header says it, where those who call it look")]

use crate::steps::Work;
use crate::training;
use crate::warning::catch_panic;

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_work_begin(work: i32) -> i32 {
    catch_panic(-1, || {
        let begin = |work| {
            if matches!(work, Work::Backward | Work::Gradients) && training::accepts(work) {
                training::open();
            }
            training::begin(work)
        };
        Work::from_number(work).and_then(begin).unwrap_or(-1)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_work_end(work: i32, token: i32, which: u64) -> i32 {
    catch_panic(0, || {
        let Some(work) = Work::from_number(work).filter(|_| token >= 0) else { return 0 };
        training::end(work, token);
        if work == Work::Fetch {
            training::fetched((which != 0).then_some(None));
        }
        training::settle(work, which).unwrap_or(0)
    })
}
