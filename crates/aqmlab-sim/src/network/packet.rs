//! What a link carries: packets of the simulator, and of the emulator.

use aqmlab_aqm::{Headers, Reason};
use aqmlab_core::Packet;

use super::routes::Position;

/// What became of a packet that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// A queue dropped it.
    Dropped(Reason),
    /// It was lost on its way.
    Lost,
}

/// Where packets keep what is too large for them.
pub trait SidePool {
    /// How many packets keep something in it.
    fn live_count(&self) -> u64;
}

/// Packets that keep nothing.
impl SidePool for () {
    fn live_count(&self) -> u64 {
        0
    }
}

/// A packet as links carry it: a value that moves from queue to wire to pipe.
/// What is too large for it is kept in a store, one of each network.
///
/// A type of packets that keep something should be neither `Copy` nor `Clone`: the compiler then
/// sees to it that a packet is in one place, and gives back what it keeps once.
pub trait NetworkPacket: Packet + Sized + Send {
    /// Where the rest of the packets is kept.
    type Store: SidePool + Headers<Self>;
    /// How far it has come on its route.
    fn position(&self) -> Position;
    /// It has come so far.
    fn set_position(&mut self, position: Position);
    /// Its flow, for recordings.
    fn flow(&self) -> u32;
    /// Whether it only acknowledges, for recordings.
    fn is_ack(&self) -> bool;
    /// Whether it opens a connection, for recordings.
    fn is_syn(&self) -> bool;
    /// Whether it keeps something in the store.
    #[inline]
    fn has_payload(&self) -> bool {
        false
    }
    /// It does not arrive, and gives back what it keeps in the store.
    fn end(self, store: &mut Self::Store, fate: LossCause);
    /// The same packet once more, with what it keeps in the store.
    fn copy(&self, store: &mut Self::Store) -> Self;
}
