//! What a link carries: packets of the simulator, and of the emulator.

use aqmlab_aqm::Reason;
use aqmlab_core::Packet;

use super::routes::Position;

/// A packet as links carry it: a value that moves from queue to wire to pipe.
/// What is too large for it is kept in a store, one of each network.
pub trait Carried: Packet + Send + 'static {
    /// Where the rest of the packets is kept.
    type Store;
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
    /// It is dropped or lost, and takes what it keeps in the store with it.
    fn forget(&self, store: &mut Self::Store);
    /// A queue drops it: it is forgotten, and some keep the reason.
    #[inline]
    fn dropped(&self, store: &mut Self::Store, _reason: Reason) {
        self.forget(store);
    }
    /// The same packet once more, with what it keeps in the store.
    fn copy(&self, store: &mut Self::Store) -> Self;
}
