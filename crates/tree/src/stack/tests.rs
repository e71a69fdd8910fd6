use std::{hint::black_box, thread};

use super::*;

fn descend(levels: usize) -> usize {
    let frame = black_box([levels; 128]);
    if levels == 0 {
        return 0;
    }
    descend(levels - 1) + frame.len() / 128
}

#[test]
fn deep_recursion_runs_in_the_same_thread() {
    let levels = 40 << 10;
    let (here, depth) = on_deep_stack(|| (thread::current().id(), descend(levels))).unwrap();
    assert_eq!((here, depth), (thread::current().id(), levels));
}

#[test]
fn nested_work_shares_the_deep_stack() {
    let (left, inner) = on_deep_stack(|| {
        let left = stacker::remaining_stack();
        (left, on_deep_stack(stacker::remaining_stack).unwrap())
    })
    .unwrap();
    assert!(inner < left, "{inner:?} of {left:?}");
}

#[test]
fn nested_work_gets_a_new_stack_if_little_is_left() {
    fn deep_inside(levels: usize) -> Option<usize> {
        let frame = black_box([levels; 128]);
        if levels == 0 {
            return on_deep_stack(stacker::remaining_stack).unwrap();
        }
        deep_inside(levels - 1).filter(|_| frame.len() == 128)
    }
    let left = on_deep_stack(|| deep_inside(40 << 10)).unwrap().unwrap();
    assert!(left > ENOUGH_BYTES, "{left}");
}

#[test]
fn panic_propagates_to_the_caller() {
    let panic = catch_unwind(|| on_deep_stack(|| panic!("of work"))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"of work"));
}
