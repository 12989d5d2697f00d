// SPDX-License-Identifier: BSD-2-Clause
//! Two stages with a short queue between them, in Rust with its standard library alone: decoding takes 20 units of work for an item,
//! filtering 12. usage: stages SECONDS
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

const UNIT: u64 = 12_000;

#[inline(never)]
fn decode(mut x: u64) -> u64 {
    let mut i = 20 * UNIT;
    while i > 0 { x ^= x << 13; x ^= x >> 7; x ^= x << 17; i -= 1; } // LINE:decode
    x
}

#[inline(never)]
fn filter(mut x: u64) -> u64 {
    let mut i = 12 * UNIT;
    while i > 0 { x ^= x << 13; x ^= x >> 7; x ^= x << 17; i -= 1; } // LINE:filter
    x
}

/// The progress point: an item is done.
#[inline(never)]
fn progress(x: u64) {
    unsafe { std::ptr::read_volatile(&x) };
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (send, receive) = sync_channel::<u64>(4);

    let decoder = thread::spawn(move || {
        let mut x = 1;
        while Instant::now() < end {
            x = decode(x);
            if send.send(x).is_err() {
                break;
            }
        }
    });
    for x in receive {
        progress(filter(x));
    }
    decoder.join().unwrap();
}
