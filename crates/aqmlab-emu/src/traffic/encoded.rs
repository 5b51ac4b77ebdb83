//! Encoding of results for the transfer from the traffic process to the emulator, which are the same
//! program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use aqmlab_core::{Span, Time};
use aqmlab_sim::GroupResult;
use aqmlab_sim::endpoints::Direction;
use aqmlab_sim::endpoints::datagrams::DatagramSummary;
use aqmlab_sim::network::probe::TimeSummary;
use aqmlab_sim::workload::quantities::Quantity;

use super::flow_stats::{Connection, Datagrams, FlowStats};
use crate::sys::tcp::Info;

/// Values that are encoded as bytes.
pub trait Encoded: Sized {
    /// Appends the value.
    fn encode(&self, bytes: &mut Vec<u8>);
    /// Removes a value from the beginning.
    fn decode(bytes: &mut &[u8]) -> Self;
}

/// Encodes types as numbers of 64 bits.
macro_rules! numbers {
    ($($Type:ty: $to:expr, $of:expr;)+) => { $(
        impl Encoded for $Type {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let to: fn($Type) -> u64 = $to;
                bytes.extend(to(*self).to_le_bytes());
            }
            fn decode(bytes: &mut &[u8]) -> Self {
                let (head, rest) = bytes.split_first_chunk().expect("written by the same program");
                *bytes = rest;
                let of: fn(u64) -> $Type = $of;
                of(u64::from_le_bytes(*head))
            }
        }
    )+ };
}

/// Encodes structs by their fields; the last ones are not encoded.
macro_rules! fields {
    ($($Type:ident { $($field:ident),+ $(; $($local:ident),+)? })+) => { $(
        impl Encoded for $Type {
            fn encode(&self, bytes: &mut Vec<u8>) {
                $( self.$field.encode(bytes); )+
            }
            fn decode(bytes: &mut &[u8]) -> Self {
                $Type {
                    $( $field: Encoded::decode(bytes), )+
                    $( $( $local: Default::default(), )+ )?
                }
            }
        }
    )+ };
}

numbers! {
    u64: |number| number, |number| number;
    u32: u64::from, |number| number as u32;
    u16: u64::from, |number| number as u16;
    f64: f64::to_bits, f64::from_bits;
    Time: Time::as_nanos, Time::from_nanos;
    Span: Span::as_nanos, Span::from_nanos;
    Direction: |direction| direction as u64, |number| Direction::ALL[number as usize];
}

fields! {
    FlowStats { groups, members, connections, datagrams, warmup, members_done, failures; awaited }
    GroupResult { started, completed, bytes, times, values; traffic, stack }
    Connection { group, index, direction, start, finish, size, info, before; stream }
    Info { rtt, retransmits, bytes_acked, data_segments, timeouts }
    Datagrams { group, index, direction, start, summary; sent, sent_bytes, before, sink }
    DatagramSummary { sent, sent_bytes, received, received_bytes, delay, jitter }
    TimeSummary { count, mean, quantiles, min, max, buckets }
    Quantity { name, direction }
}

impl<T: Encoded> Encoded for Vec<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).encode(bytes);
        self.iter().for_each(|item| item.encode(bytes));
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        (0..u64::decode(bytes)).map(|_| T::decode(bytes)).collect()
    }
}

impl<T: Encoded, const N: usize> Encoded for [T; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|item| item.encode(bytes));
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        std::array::from_fn(|_| T::decode(bytes))
    }
}

impl<A: Encoded, B: Encoded> Encoded for (A, B) {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.0.encode(bytes);
        self.1.encode(bytes);
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        (A::decode(bytes), B::decode(bytes))
    }
}

impl<T: Encoded + Clone> Encoded for Option<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.iter().cloned().collect::<Vec<T>>().encode(bytes);
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        Vec::decode(bytes).pop()
    }
}

impl Encoded for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).encode(bytes);
        bytes.extend(self.bytes());
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        let size = u64::decode(bytes) as usize;
        let (text, rest) = bytes.split_at(size);
        *bytes = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

/// Names; a decoded one is never freed. Few exist.
impl Encoded for &'static str {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.to_string().encode(bytes);
    }
    fn decode(bytes: &mut &[u8]) -> Self {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::decode(bytes);
        if let Some(found) = known.get(text.as_str()) {
            return found;
        }
        let text: &'static str = Box::leak(text.into_boxed_str());
        known.insert(text);
        text
    }
}
