//! The part of the C interface by which gnntop finds the steps of a loop: `include/gnntop.h` describes each call.
#![allow(missing_docs, reason = "the header says it, where those who call it look")]

use crate::steps::Work;
use crate::training::{self, Settled};
use crate::warning::catch_panic;

#[unsafe(no_mangle)]
pub extern "C" fn gnntop_work_begin(work: i32) -> i32 {
    catch_panic(-1, || {
        let begin = |work| {
            if matches!(work, Work::Backward | Work::Gradients) {
                training::train(work);
            }
            training::begin(work).0
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
        let Settled { step, is_inference } = training::settle(work, which);
        if is_inference {
            training::before_infer();
            training::infer();
        }
        step.unwrap_or(0)
    })
}
